// SPDX-License-Identifier: Apache-2.0
// Describes objects of HDF5 files as h5wasm reads them, which contains libhdf5 2.0. Standard input:
// JSON list of {path, objects}, objects the paths of what to describe in that file. Prints for each
// file a JSON line: its objects by path, with links, types, spaces, values and attributes. Integers
// that JSON numbers cannot hold are texts like "5n", and references are the paths of their targets.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import h5wasm from "h5wasm/node";

const lib = await h5wasm.ready;
lib.activate_throwing_error_handler();    // without it, what cannot be read has random values
const LISTED = 200000;    // larger arrays of numbers are described by a digest

function plain(file, value) {
	if (ArrayBuffer.isView(value) && value.length > LISTED)
		return createHash("sha256").update(Buffer.from(value.buffer, value.byteOffset,
			value.byteLength)).digest("hex");
	if (Array.isArray(value) || ArrayBuffer.isView(value))
		return Array.from(value, (v) => plain(file, v));
	if (value?.ref_data)
		return value.ref_data.some((b) => b) ? lib.get_referenced_name(file.file_id, value.ref_data,
			value.constructor.name === "Reference") : null;
	if (typeof value === "bigint") return `${value}n`;
	if (typeof value === "number" && !Number.isFinite(value)) return String(value);
	return value;
}

// The description of what has a type, a space and values. `value` fails for types that the package
// cannot read.
function values(file, object) {
	const out = { metadata: JSON.parse(JSON.stringify(object.metadata)) };
	try {
		out.value = plain(file, object.value);
	} catch (error) {
		out.failure = String(error).split("\n")[0];
	}
	return out;
}

function describe(file, object) {
	const out = { kind: object.type, attributes: {} };
	for (const [name, attribute] of Object.entries(object.attrs))
		out.attributes[name] = values(file, attribute);
	if (object instanceof h5wasm.Dataset) {
		Object.assign(out, values(file, object));
		out.filters = object.filters.map((f) => f.id);
	} else if (object instanceof h5wasm.Datatype) {
		out.metadata = object.metadata;
	} else {
		out.links = {};
		for (const name of object.keys()) {
			const path = `${object.path.replace(/\/$/, "")}/${name}`, type = object.get_type(path);
			if (type < 0) continue;    // the package misreads names that are not UTF-8
			out.links[name] = type === lib.H5G_LINK ? object.get_link(path)
				: type === lib.H5G_UDLINK ? object.get_external_link(path).obj_path : type;
		}
	}
	return out;
}

for (const { path, objects } of JSON.parse(readFileSync(0, "utf8"))) {
	const file = new h5wasm.File(path, "r"), out = { path, objects: {} };
	for (const name of objects)
		try {
			out.objects[name] = describe(file, name === "/" ? file : file.get(name));
		} catch (error) {
			out.objects[name] = { failure: String(error).split("\n")[0] };
		}
	file.close();
	console.log(JSON.stringify(out));
}
