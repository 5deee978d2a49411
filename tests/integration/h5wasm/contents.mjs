// SPDX-License-Identifier: Apache-2.0
// Prints what a reader of HDF5 files finds. Argument: the reader, which is jsfive or a version of
// h5wasm under its name in package.json. Standard input: JSON list of {path, objects}, objects the
// paths of what to read in that file. Prints for each file a JSON line: its objects by path, with
// what readers.py calls items, and a text "failure" in the place of what the reader fails on.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const TYPED = { f4: Float32Array, f8: Float64Array, i1: Int8Array, i2: Int16Array, i4: Int32Array,
	i8: BigInt64Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, u8: BigUint64Array };
const [,, name] = process.argv;
console.log = console.error;    // where jsfive writes warnings

function attempt(read) {
	try {
		return read();
	} catch (error) {
		return { failure: String(error) };
	}
}

function digest(array) {
	const bytes = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
	return createHash("sha256").update(bytes).digest("hex");
}

// A value as a flat list. Maps, objects and other lists within it are shown as JSON. Numbers that
// JSON lacks are texts, and integers of 64 bits have an "n".
function flat(value) {
	const list = ArrayBuffer.isView(value) ? Array.from(value)
		: Array.isArray(value) ? value.flat(Infinity) : [value];
	return list.map((v) => typeof v === "bigint" ? `${v}n`
		: typeof v === "number" && !Number.isFinite(v) ? String(v)
		: ["string", "number"].includes(typeof v) ? v : JSON.stringify(v, (_, x) =>
			typeof x === "bigint" ? `${x}n` : ArrayBuffer.isView(x) ? Array.from(x) : x) ?? null);
}

// ---- h5wasm ----

async function openerOfH5wasm() {
	const { default: h5wasm } = await import(/^h5wasm-0\.[46]$/.test(name) ? name : `${name}/node`);
	const lib = await h5wasm.ready;
	lib.activate_throwing_error_handler?.();    // without it, what cannot be read has random values
	const open = (path) => new h5wasm.File(path, "r");
	const describe = (object, out) => {
		out.attributes = attempt(() => Object.fromEntries(Object.keys(object.attrs).map((key) =>
			[key, attempt(() => flat(object.attrs[key].value))])));
		if (object instanceof h5wasm.Group)
			out.links = attempt(() => Array.from(object.keys()).sort());
		if (!(object instanceof h5wasm.Dataset)) return;
		out.shape = attempt(() => object.shape);
		out.value = attempt(() => {
			const { value } = object;
			return ArrayBuffer.isView(value) ? { digest: digest(value) } : flat(value);
		});
	};
	return { open, describe, close: (file) => file.close() };
}

// ---- jsfive ----

// Its arrays lack the elements of chunks that are not stored.
function ofJsfive(dataset) {
	const { value, dtype, shape } = dataset;
	const typed = typeof dtype === "string" && TYPED[dtype.replace(/^[<>|=]/, "")];
	if (value.length !== shape.reduce((a, b) => a * b, 1))
		throw new Error("fewer elements than the shape has");
	for (let i = 0; i < value.length; i++)
		if (value[i] === undefined)
			throw new Error("elements without a value");
	if (!typed) return flat(value);
	const wide = typed.BYTES_PER_ELEMENT === 8 && typed !== Float64Array;
	return { digest: digest(typed.from(value, (v) => wide ? BigInt(v) : Number(v))) };
}

async function openerOfJsfive() {
	const { File, Group, Dataset } = await import("jsfive");
	const open = (path) => {
		const bytes = readFileSync(path);
		const { buffer, byteOffset, byteLength } = bytes;
		return new File(buffer.slice(byteOffset, byteOffset + byteLength), path);
	};
	const describe = (object, out) => {
		out.attributes = attempt(() => Object.fromEntries(Object.entries(object.attrs).map(
			([key, value]) => [key, flat(value)])));
		if (object instanceof Group) out.links = attempt(() => object.keys.sort());
		if (!(object instanceof Dataset)) return;
		out.shape = attempt(() => object.shape);
		out.value = attempt(() => ofJsfive(object));
	};
	return { open, describe, close: () => {} };
}

const { open, describe, close } = await (name === "jsfive" ? openerOfJsfive() : openerOfH5wasm());
for (const { path, objects } of JSON.parse(readFileSync(0, "utf8"))) {
	const out = { path, objects: {} };
	let file;
	try {
		file = open(path);
		for (const object of objects) {
			const found = out.objects[object] = {};
			const failed = attempt(() => describe(object === "/" ? file : file.get(object), found));
			if (failed?.failure) found.failure = failed.failure;
		}
	} catch (error) {
		out.failure = String(error);
	}
	if (file) close(file);
	process.stdout.write(`${JSON.stringify(out,
		(_, v) => typeof v === "bigint" ? Number(v) : v)}\n`);
}
