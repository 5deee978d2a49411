// SPDX-License-Identifier: Apache-2.0
// Writes Zarr stores with zarrita (v3) or zarr.js (v2). Standard input: JSON list of {library, path,
// attributes, arrays}. An array is {name, attributes, options, type, bytes, rows}: `options` are
// those of the library, `type` is a JavaScript type, `bytes` the elements in base64. If
// `rows` is a number, these are as many rows of the first axis, and the others are not stored.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import FileSystemStore from "@zarrita/storage/fs";
import * as zarrjs from "zarr";
import * as zarrita from "zarrita";

const NUMBERS = { "NaN": NaN, "Infinity": Infinity, "-Infinity": -Infinity };

// JSON has neither these numbers nor integers of 64 bits.
function value(v, type) {
	return v === null || v === undefined ? v : type.startsWith("Big") ? BigInt(v) : NUMBERS[v] ?? v;
}

function elements({ type, bytes }) {
	const buffer = Uint8Array.from(Buffer.from(bytes, "base64")).buffer;
	return new (type === "BoolArray" ? zarrita.BoolArray : globalThis[type])(buffer);
}

function strides(shape) {
	return shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
}

async function withZarrita({ path, attributes, arrays }) {
	const root = zarrita.root(new FileSystemStore(path));
	await zarrita.create(root, { attributes });
	for (const a of arrays) {
		const { name, options, type, rows } = a;
		const array = await zarrita.create(root.resolve(name), {
			...options, attributes: a.attributes, fillValue: value(options.fillValue, type),
		});
		const data = elements(a);
		if (options.shape.length === 0) {
			await zarrita.set(array, null, data[0]);
			continue;
		}
		const shape = [rows ?? options.shape[0], ...options.shape.slice(1)];
		if (shape.includes(0)) continue;
		const all = shape.map((n) => zarrita.slice(0, n));
		await zarrita.set(array, all, { data, shape, stride: strides(shape) });
	}
}

class Directory {
	constructor(path) {
		this.path = path;
	}

	keys() {
		return [];
	}

	containsItem(key) {
		return existsSync(join(this.path, key));
	}

	getItem(key) {
		if (!this.containsItem(key)) throw new zarrjs.KeyError(key);
		return readFileSync(join(this.path, key));
	}

	setItem(key, bytes) {
		const path = join(this.path, key);
		mkdirSync(dirname(path), { recursive: true });
		writeFileSync(path, typeof bytes === "string" ? bytes : Buffer.from(bytes));
		return true;
	}

	deleteItem(key) {
		rmSync(join(this.path, key));
		return true;
	}
}

async function withZarrJs({ path, attributes, arrays }) {
	const store = new Directory(path);
	const root = await zarrjs.openGroup(store, null, "a");
	for (const [key, v] of Object.entries(attributes)) await root.attrs.setItem(key, v);
	for (const a of arrays) {
		const { name, options, type, rows } = a;
		const array = await zarrjs.create({
			...options, store, path: name, fillValue: value(options.fillValue, type),
		});
		for (const [key, v] of Object.entries(a.attributes)) await array.attrs.setItem(key, v);
		const shape = [rows ?? options.shape[0], ...options.shape.slice(1)];
		const all = shape.map((n) => zarrjs.slice(0, n));
		await array.set(all, new zarrjs.NestedArray(elements(a).buffer, shape, options.dtype));
	}
}

for (const store of JSON.parse(readFileSync(0, "utf8"))) {
	await (store.library === "zarrita" ? withZarrita : withZarrJs)(store);
	console.log(JSON.stringify(store.path));
}
