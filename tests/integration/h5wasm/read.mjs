// SPDX-License-Identifier: Apache-2.0
// Reads every object of the files named on standard input (a JSON list) with h5wasm, and prints
// for each file a JSON line: its datasets with shape and a digest of their numbers, and failures.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import h5wasm from "h5wasm/node";

await h5wasm.ready;

function visit(group, path, seen, out) {
	for (const name of group.keys()) {
		const at = `${path}/${name}`;
		try {
			const object = group.get(name);
			if (object === null) continue;	// a dangling link
			for (const key of Object.keys(object.attrs ?? {})) object.attrs[key].value;
			if (object instanceof h5wasm.Dataset) {
				const value = object.value;
				const numbers = ArrayBuffer.isView(value) ? value : null;
				out.datasets[at] = {
					shape: object.shape,
					digest: numbers && createHash("sha256").update(
						Buffer.from(numbers.buffer, numbers.byteOffset,
							numbers.byteLength)).digest("hex"),
				};
			} else if (object instanceof h5wasm.Group && path.split("/").length < 30) {
				visit(object, at, seen, out);
			}
		} catch (error) {
			out.failures[at] = String(error);
		}
	}
}

for (const path of JSON.parse(readFileSync(0, "utf8"))) {
	const out = { path, datasets: {}, failures: {} };
	try {
		const file = new h5wasm.File(path, "r");
		visit(file, "", new Set(), out);
		file.close();
	} catch (error) {
		out.failures[""] = String(error);
	}
	console.log(JSON.stringify(out, (_, v) => typeof v === "bigint" ? Number(v) : v));
}
