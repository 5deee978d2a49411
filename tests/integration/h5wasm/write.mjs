// SPDX-License-Identifier: Apache-2.0
// Writes HDF5 files with h5wasm: every type, layout, chunk index, filter, form of groups and form of
// attributes that its libhdf5 2.0 can write. Standard input: JSON list of {path, form, libver}.
// `form` is a function of this file, and `libver` the lower and the upper bound of the format. With
// `objects` instead of `form`, it changes these objects of a file that exists.
import { readFileSync } from "node:fs";
import h5wasm from "h5wasm/node";

const lib = await h5wasm.ready;
const UNLIMITED = 18446744073709551615n;
const { H5T_INTEGER, H5T_STRING, H5T_REFERENCE, H5T_COMPOUND } = Object.fromEntries(
	["H5T_INTEGER", "H5T_STRING", "H5T_REFERENCE", "H5T_COMPOUND"].map((name) =>
		[name, lib.H5T_class_t[name].value]));
const ARRAYS = [Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array,
	BigInt64Array, BigUint64Array, Float32Array, Float64Array];

function ok(result) {
	if (result < 0) throw new Error("libhdf5 fails");
	return result;
}

// Numbers of all sizes and signs, and of floats also those that text cannot express.
function sample(array, n) {
	const data = new array(n);
	for (let i = 0; i < n; i++) {
		const x = (i * 2654435761) % 4294967296 - 2147483648;
		data[i] = array.name.startsWith("Big") ? BigInt(x) * 4294967291n
			: array.name.startsWith("Float") ? x / 1048583 : x;
	}
	if (array.name.startsWith("Float"))
		data.set([NaN, Infinity, -Infinity, -0, 1e-40].slice(0, Math.max(n - 1, 0)));
	return data;
}

function range(n) {
	const data = new Int32Array(n);
	for (let i = 0; i < n; i++) data[i] = i;
	return data;
}

// ---- what the package's own functions do not offer ----

function withBytes(bytes, use) {
	const at = lib._malloc(Math.max(bytes.length, 1));
	lib.HEAPU8.set(bytes, at);
	try {
		return use(BigInt(at));
	} finally {
		lib._free(at);
	}
}

function space(shape, maxshape) {
	return {
		shape: shape.map(BigInt),
		maxshape: (maxshape || shape).map((n) => n === null ? UNLIMITED : BigInt(n)),
	};
}

function rawDataset(f, name, type, shape, bytes, more = {}) {
	const metadata = { ...type, ...space(shape, more.maxshape), chunks: more.chunks?.map(BigInt),
		compression: more.compression, compression_opts: more.compression_opts };
	withBytes(bytes, (at) => ok(lib.create_dataset(f.file_id, name, at, metadata)));
}

function rawAttribute(f, path, name, type, shape, bytes) {
	withBytes(bytes, (at) =>
		ok(lib.create_attribute(f.file_id, path, name, at, { ...type, ...space(shape) })));
}

function bytesOf(n) {
	return Uint8Array.from({ length: n }, (_, i) => (i * 37 + 11) % 256);
}

// ---- one function for each file ----

function numbers(f) {
	for (const array of ARRAYS) {
		const { name } = array;
		f.create_dataset({ name: `d ${name}`, data: sample(array, 20) });
		f.create_dataset({ name: `s ${name}`, data: sample(array, 1), shape: [] });
		f.create_dataset({ name: `c ${name}`, data: sample(array, 20), shape: [5, 4], chunks: [2, 3] });
		f.create_attribute(name, sample(array, 6), [2, 3]);
		f.create_attribute(`${name} scalar`, sample(array, 1), []);
	}
	for (const size of [3, 5, 6, 7])
		for (const signed of [false, true]) {
			const type = { type: H5T_INTEGER, size, signed };
			rawDataset(f, `${signed} ${size}`, type, [9], bytesOf(9 * size));
			rawAttribute(f, "/", `${signed} ${size}`, type, [2], bytesOf(2 * size));
		}
	f.create_dataset({ name: "no elements", data: new Int16Array(0), shape: [0, 3] });
	f.create_dataset({ name: "rank 32", data: range(4), shape: [...Array(30).fill(1), 2, 2] });
}

function strings(f) {
	const words = ["", "a", "seven77", "caf\u00e9", "longer than ten bytes \u4e2d"];
	for (const dtype of ["S10", "A10", "S1", "S", "A"]) {
		const ascii = dtype[0] === "A";
		const data = words.map((w) => ascii ? w.replace(/[^\0-\x7f]/g, "?") : w);
		f.create_dataset({ name: `d ${dtype}`, data, dtype });
		f.create_dataset({ name: `s ${dtype}`, data: data[3], shape: [], dtype });
		f.create_dataset({ name: `c ${dtype}`, data: [...data, ...data], shape: [10], dtype,
			chunks: [3], maxshape: [null] });
		f.create_attribute(dtype, data, [5], dtype);
		f.create_attribute(`${dtype} scalar`, data[2], [], dtype);
	}
	f.create_dataset({ name: "long items", data: ["x".repeat(70000), "y", "z".repeat(5000)], dtype: "S" });
}

function compounds(f) {
	const columns = new Map([["i8", sample(Int8Array, 7)], ["u64", sample(BigUint64Array, 7)],
		["f4", sample(Float32Array, 7)], ["na\u00efve", sample(Float64Array, 7)]]);
	f.create_dataset({ name: "packed", data: columns });
	f.create_dataset({ name: "chunked", data: columns, chunks: [2], maxshape: [null] });
	f.create_dataset({ name: "gzip", data: columns, chunks: [2], compression: "gzip",
		compression_opts: 5 });
	f.create_attribute("packed", columns);
	f.create_dataset({ name: "text", data: new Map([["t", ["a", "bb", ""]], ["n", range(3)]]),
		dtype: [["t", "S5"], ["n", "<i"]] });
	const inner = { type: H5T_COMPOUND, size: 12, compound_type: { nmembers: 2, members: [
		{ name: "late", offset: 8, type: H5T_INTEGER, size: 4, signed: true },
		{ name: "early", offset: 1, type: H5T_INTEGER, size: 2, signed: false }] } };
	const outer = { type: H5T_COMPOUND, size: 32, compound_type: { nmembers: 3, members: [
		{ ...inner, name: "inner", offset: 16 },
		{ name: "text", offset: 3, type: H5T_STRING, size: 5, cset: 0 },
		{ name: "byte", offset: 0, type: H5T_INTEGER, size: 1, signed: true }] } };
	rawDataset(f, "padded", inner, [4], bytesOf(48));
	rawDataset(f, "nested", outer, [4], bytesOf(128).map((b) => b & 0x7f));
	rawDataset(f, "nested chunked", outer, [4], bytesOf(128).map((b) => b & 0x7f), { chunks: [3] });
	rawAttribute(f, "/", "nested", outer, [], bytesOf(32).map((b) => b & 0x7f));
	const mixed = { type: H5T_COMPOUND, size: 16, compound_type: { nmembers: 3, members: [
		{ name: "text", offset: 0, type: H5T_STRING, size: 4, vlen: true, cset: 1 },
		{ name: "where", offset: 8, type: H5T_REFERENCE, size: 8 },
		{ name: "n", offset: 4, type: H5T_INTEGER, size: 4, signed: true }] } };
	withBytes(new TextEncoder().encode("na\u00efve\0"), (text) => {
		const bytes = new Uint8Array(48), view = new DataView(bytes.buffer);
		for (let i = 0; i < 3; i++) {
			view.setUint32(16 * i, i === 1 ? 0 : Number(text), true);
			view.setInt32(16 * i + 4, -i, true);
			if (i !== 2) bytes.set(f.get("packed").create_reference().ref_data, 16 * i + 8);
		}
		rawDataset(f, "mixed", mixed, [3], bytes);
		rawDataset(f, "mixed chunked", mixed, [3], bytes, { chunks: [2] });
		rawAttribute(f, "/", "mixed", mixed, [3], bytes);
	});
}

function references(f) {
	const target = f.create_dataset({ name: "target", data: range(10) });
	const group = f.create_group("group");
	const data = [target, group, f, target].map((o) => o.create_reference());
	f.create_dataset({ name: "references", data });
	f.create_dataset({ name: "chunked", data, shape: [2, 2], chunks: [1, 2], maxshape: [null, null] });
	f.create_attribute("one", data[0]);
	group.create_attribute("many", data, [4]);
}

// The forms of chunk indexes. The implicit index needs early allocation, which is not offered: see rewrite().
const INDEXES = [
	["single", [5, 12], [5, 12], [5, 12]], ["fixed", [50, 12], [50, 12], [1, 5]],
	["fixed paged", [1100], [2200], [1]], ["extensible", [50, 12], [null, 12], [4, 5]],
	["extensible second", [4, 50], [8, null], [3, 2]], ["extensible long", [1000], [null], [1]],
	["tree", [50, 12], [null, null], [4, 5]], ["tree deep", [40, 40], [null, null], [1, 2]],
	["rank 4", [3, 4, 5, 2], null, [2, 3, 2, 1]]];

function layouts(f) {
	f.create_dataset({ name: "contiguous", data: range(60), shape: [5, 12] });
	f.create_dataset({ name: "cut", data: Array(1200).fill("x"), shape: [3, 400], dtype: "S4096" });
	for (const [name, shape, maxshape, chunks] of INDEXES) {
		const data = range(shape.reduce((a, b) => a * b));
		f.create_dataset({ name, data, shape, maxshape, chunks });
		f.create_dataset({ name: `${name} gzip`, data, shape, maxshape, chunks, compression: "gzip",
			compression_opts: 4 });
		if (!maxshape?.includes(null)) continue;
		const none = maxshape.map((n) => n === null ? 0 : Math.min(n, 4));
		f.create_dataset({ name: `${name} empty`, data: range(0), shape: none, maxshape, chunks });
		if (data.length > 600) continue;
		for (const more of [{}, { compression: "gzip", compression_opts: 1 }]) {
			const d = f.create_dataset({ name: `${name} resized${more.compression || ""}`, data, shape,
				maxshape, chunks, ...more });
			ok(d.resize(shape.map((n, i) => maxshape[i] === null ? n - 3 : n)));
			ok(d.resize(shape.map((n, i) => maxshape[i] === null ? n + 7 : n)));
		}
		const d = f.create_dataset({ name: `${name} shrunk`, data, shape, maxshape, chunks });
		ok(d.resize(none));
	}
	// Chunks whose sizes need one to three bytes in the indexes of layout version 4.
	for (const size of [10, 300, 70000])
		f.create_dataset({ name: `chunks of ${size}`, data: sample(Uint8Array, size * 2 + 1),
			chunks: [size], maxshape: [null], compression: "gzip", compression_opts: 1 });
	const sparse = f.create_dataset({ name: "sparse", data: new Float64Array(1), shape: [1, 1],
		maxshape: [null, null], chunks: [10, 10] });
	ok(sparse.resize([500, 500]));
	for (const i of [5, 499]) sparse.write_slice([[i, i + 1], [i, i + 1]], new Float64Array([i]));
}

const { H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32, H5Z_FILTER_SZIP,
	H5Z_FILTER_NBIT, H5Z_FILTER_SCALEOFFSET } = lib;
const FILTERS = [["deflate", H5Z_FILTER_DEFLATE, [9]], ["deflate 0", H5Z_FILTER_DEFLATE, [0]],
	["shuffle", H5Z_FILTER_SHUFFLE, []], ["fletcher32", H5Z_FILTER_FLETCHER32, []],
	["szip", H5Z_FILTER_SZIP, [141, 32]], ["szip nn", H5Z_FILTER_SZIP, [161, 8]],
	["nbit", H5Z_FILTER_NBIT, []]];

function filters(f) {
	const chunked = { shape: [20, 50], chunks: [7, 40] };
	for (const array of [Int8Array, Uint16Array, Int32Array, BigInt64Array, Float32Array, Float64Array]) {
		const big = array.name.startsWith("Big"), float = array.name.startsWith("Float");
		const data = array.from({ length: 1000 }, (_, i) => big ? BigInt(i >> 5) : i >> 5);
		const sets = [...FILTERS, ["scale-offset", H5Z_FILTER_SCALEOFFSET, float ? [0, 3] : [2, 0]]];
		for (const [name, compression, compression_opts] of sets)
			f.create_dataset({ name: `${name} ${array.name}`, data, ...chunked, compression,
				compression_opts });
	}
}

function groups(f) {
	for (const n of [0, 1, 8, 9, 500])
		for (const ordered of [false, true]) {
			const g = f.create_group(`${ordered ? "ordered " : "g"}${n}`, ordered);
			for (let i = 0; i < n; i++) g.create_group(`link ${String(n - i).padStart(3, "0")}`);
		}
	ok(f.create_hard_link("/g1", "hard"));
	f.create_group("loop");
	ok(f.create_hard_link("/loop", "/loop/self"));
	ok(f.create_hard_link("/", "/loop/root"));
	ok(f.create_soft_link("/g1/link 001", "soft"));
	ok(f.create_soft_link("nowhere/at all", "dangling"));
	ok(f.create_soft_link("circle b", "circle a"));
	ok(f.create_soft_link("circle a", "circle b"));
	ok(f.create_soft_link("/soft", "name with \u00e9 and spaces"));
	ok(f.create_soft_link("long name", "x".repeat(3000)));
	ok(f.create_external_link("other.h5", "/x", "external"));
	for (let i = 0; i < 20; i++) {
		ok(f.create_soft_link(`/g${i}`, `/ordered 9/soft ${20 - i}`));
		ok(f.create_external_link(`${i}.h5`, "/x", `/ordered 9/external ${20 - i}`));
	}
	let deep = "";
	for (let i = 0; i < 50; i++) f.create_group(deep += "/d");
}

function attributes(f) {
	for (const n of [1, 8, 9, 300])
		for (const ordered of [false, true]) {
			const g = f.create_group(`${ordered ? "ordered " : "a"}${n}`, ordered);
			for (let i = 0; i < n; i++)
				g.create_attribute(`name ${String(n - i).padStart(3, "0")}`, range(i % 5));
		}
	f.create_attribute("\u00e9 name", "na\u00efve");
	f.create_attribute("many dimensions", range(24), [2, 3, 4]);
	f.create_attribute("no elements", new Float64Array(0), [0, 2]);
	for (const track_order of [false, true]) {
		const d = f.create_dataset({ name: `dataset ${track_order}`, data: range(3), track_order });
		for (let i = 0; i < 20; i++) d.create_attribute(`a${i}`, `text ${i}`);
		for (const i of [3, 0, 19]) ok(d.delete_attribute(`a${i}`));
		ok(d.delete_attribute("a4"));
		d.create_attribute("a4", "a longer text than it was ".repeat(10));
	}
}

// Not in the earliest format, whose attributes have at most 64 KiB.
function huge_attributes(f) {
	f.create_attribute("huge", range(20000));
	f.create_dataset({ name: "d", data: range(1) }).create_attribute("huge", "x".repeat(1e6), [],
		"A1000000");
}

function scales(f) {
	f.create_dataset({ name: "data", data: range(60), shape: [5, 12] });
	for (const [i, name] of ["x", "y"].entries()) {
		f.create_dataset({ name, data: sample(Float32Array, [5, 12][i]) }).make_scale(`scale ${name}`);
		f.get("data").attach_scale(i, `/${name}`);
		f.get("data").set_dimension_label(i, `label \u00e9${i}`);
	}
	f.create_dataset({ name: "second x", data: range(5) }).make_scale("");
	f.get("data").attach_scale(0, "/second x");
	f.get("data").detach_scale(0, "/x");
}

// Not in old formats.
function swmr(f) {
	const d = f.create_dataset({ name: "rows", data: range(12), shape: [3, 4], maxshape: [null, 4],
		chunks: [2, 4], compression: "gzip", compression_opts: 2 });
	f.create_dataset({ name: "fixed", data: range(20), chunks: [3] });
	f.create_attribute("a", "text");
	f.flush();
	ok(f.start_swmr_write());
	for (let n = 4; n < 20; n++) {
		ok(d.resize([n, 4]));
		d.write_slice([[n - 1, n], []], range(4));
		f.flush();
	}
}

// What a domain cannot hold. Everything else in it can be imported.
function unsupported(f) {
	const d = f.create_dataset({ name: "fine", data: range(4) });
	f.create_dataset({ name: "regions", data: [d.create_region_reference([[1, 3]])] });
	d.create_attribute("with/slash", range(1));
	d.create_attribute("beside", range(2));
}

// ---- a file that exists ----

// Writes all values again, changes extents, and adds and deletes objects, links and attributes.
function rewrite(f, names) {
	for (const name of names) {
		const object = name === "/" ? f : f.get(name);
		if (object instanceof h5wasm.Dataset) {
			const { metadata } = object;
			const bytes = new Uint8Array(metadata.size * metadata.total_size);
			if (metadata.shape) withBytes(bytes, (at) => {
				// It lacks some filters and types. An exception would leave the dataset open.
				lib.deactivate_throwing_error_handler();
				const read = lib.get_dataset_data(f.file_id, name, null, null, null, at);
				const written = read < 0 || lib.set_dataset_data(f.file_id, name, null, null, null, at);
				lib.activate_throwing_error_handler();
				ok(written);
			});
			const { shape, maxshape, chunks } = metadata;
			if (chunks && maxshape?.some((n, i) => n > shape[i]))
				ok(object.resize(shape.map((n, i) => Math.min(maxshape[i], n + 3))));
		}
		object.create_attribute("added by 2.0", [1, 2, name.length]);
		const old = Object.keys(object.attrs);
		if (old.length > 2) ok(object.delete_attribute(old[0]));
	}
	const g = f.create_group("added", true);
	for (let i = 0; i < 20; i++) ok(f.create_soft_link(`/g${i}`, `/added/link ${20 - i}`));
	for (const [name, shape, maxshape, chunks] of INDEXES.slice(0, 2).concat([INDEXES[3], INDEXES[6]]))
		g.create_dataset({ name, data: range(shape.reduce((a, b) => a * b)), shape, maxshape, chunks,
			compression: "gzip", compression_opts: 3 });
}

const forms = { numbers, strings, compounds, references, layouts, filters, groups, attributes,
	huge_attributes, scales, swmr, unsupported };
lib.activate_throwing_error_handler();
for (const { path, form, libver, objects } of JSON.parse(readFileSync(0, "utf8"))) {
	const f = new h5wasm.File(path, objects ? "a" : "w", { libver });
	if (objects) rewrite(f, objects);
	else forms[form](f);
	f.close();
}
