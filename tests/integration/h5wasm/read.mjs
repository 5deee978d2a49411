// SPDX-License-Identifier: Apache-2.0
// Reads objects of HDF5 files with h5wasm. Standard input: JSON list of {path, objects}, objects the
// paths of what to read in that file. Prints for each file a JSON line: its datasets with shape and a
// digest of their numbers or a list of their strings, and what failed.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import h5wasm from "h5wasm/node";

await h5wasm.ready;

function read(object) {
	for (const key of Object.keys(object.attrs)) object.attrs[key].value;
	if (!(object instanceof h5wasm.Dataset)) return null;
	const value = object.value;
	const numbers = ArrayBuffer.isView(value)
		&& Buffer.from(value.buffer, value.byteOffset, value.byteLength);
	return {
		shape: object.shape,
		digest: numbers && createHash("sha256").update(numbers).digest("hex"),
		strings: [value].flat(Infinity).every((v) => typeof v === "string") && [value].flat(Infinity),
	};
}

for (const { path, objects } of JSON.parse(readFileSync(0, "utf8"))) {
	const out = { path, datasets: {}, failures: {} };
	const file = new h5wasm.File(path, "r");
	for (const name of objects) {
		try {
			const found = read(name === "/" ? file : file.get(name));
			if (found) out.datasets[name] = found;
		} catch (error) {
			out.failures[name] = String(error);
		}
	}
	file.close();
	console.log(JSON.stringify(out, (_, v) => typeof v === "bigint" ? Number(v) : v));
}
