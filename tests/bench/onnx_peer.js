// SPDX-License-Identifier: GPL-3.0-or-later
// For bench_onnx.sh: `inputs GRAPH TEXT` writes files of examples that are all alike, so that a batch is known
// whatever its order, to inputs.json and for meshtf-run (whose options it prints); `compare MODEL FAMILY`
// runs the model on them and sets its scores beside scores.npy; `draw FILE SIZE…` writes an array of numbers, and
// `answers MODEL FILE NAME` sets what the model makes of it beside scores.npy.
const fs = require('fs');

function npy(name, type, dims, values) {
    let head = `{'descr': '<${type}4', 'fortran_order': False, 'shape': (${dims.join(', ')},), }`;
    head = head.padEnd(64 * Math.ceil((10 + head.length + 1) / 64) - 11) + '\n';
    const lead = Buffer.from('\x93NUMPY\x01\x00\x00\x00', 'latin1');
    lead.writeUInt16LE(head.length, 8);
    const data = type === 'f' ? Float32Array.from(values) : Int32Array.from(values);
    fs.writeFileSync(name, Buffer.concat([lead, Buffer.from(head), Buffer.from(data.buffer)]));
}

function inputs(path, text) {
    const graph = JSON.parse(fs.readFileSync(path)), given = {}, options = [];
    let state = 1;
    const draw = () => (state = (state * 48271) % 2147483647) / 2147483647 - 0.5;
    for (const input of graph.inputs) {
        const dims = input.dims.map((dim) => graph.dimensions[dim]);
        const size = dims.slice(1).reduce((a, b) => a * b, 1);
        const integers = input.feed !== 'features';
        let example = Array.from({ length: size }, () => (integers ? 0 : 3 * draw()));
        if (input.feed === 'tokens') {
            const piece = fs.readFileSync(text).subarray(0, size + 1);
            fs.writeFileSync('text', piece);
            example = [...piece.subarray(0, size)];
            options.push('--data text --held-out 0');
        }
        const values = Array.from({ length: dims[0] }, () => example).flat();
        given[input.name] = { type: integers ? 'int32' : 'float32', dims, values };
        if (input.feed !== 'tokens' && input.feed !== 'next_tokens') {
            npy(input.name + '.npy', integers ? 'i' : 'f', dims, values);
            options.push(`--data ${input.name}.npy`);
        }
    }
    fs.writeFileSync('inputs.json', JSON.stringify(given));
    console.log(options.join(' '));
}

function draw(path, ...sizes) {
    const dims = sizes.map(Number);
    let state = 1;
    const next = () => (state = (state * 48271) % 2147483647) / 2147483647 - 0.5;
    npy(path, 'f', dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, next));
}

function read(path) {
    const file = fs.readFileSync(path), begin = 10 + file.readUInt16LE(8);
    const head = file.subarray(10, begin).toString();
    const dims = head.match(/\(([0-9, ]*)\)/)[1].split(',').filter((x) => x.trim()).map(Number);
    const values = [];
    for (let at = begin; at < file.length; at += 4)
        values.push(file.readFloatLE(at));
    return { dims, values };
}

function tell(name, wanted, got) {
    let differs = got.length === wanted.values.length ? 0 : NaN, largest = 0;
    wanted.values.forEach((value, i) => {
        largest = Math.max(largest, Math.abs(value));
        differs = Math.max(differs, Math.abs(value - got[i]));
    });
    console.log(name.padEnd(16), wanted.dims.join('x').padEnd(16), largest.toPrecision(4).padStart(12),
        differs.toExponential(1).padStart(12));
    process.exit(differs <= 1e-4 * Math.max(1, largest) ? 0 : 1);
}

async function compare(path, family) {
    const ort = require('onnxruntime-node');
    const session = await ort.InferenceSession.create(path), feeds = {};
    const given = JSON.parse(fs.readFileSync('inputs.json'));
    for (const name of session.inputNames) {
        const { type, dims, values } = given[name];
        const data = type === 'int32' ? Int32Array.from(values) : Float32Array.from(values);
        feeds[name] = new ort.Tensor(type, data, dims);
    }
    tell(family, read('scores.npy'), (await session.run(feeds))[session.outputNames[0]].data);
}

async function answers(path, input, name) {
    const ort = require('onnxruntime-node');
    const session = await ort.InferenceSession.create(path), { dims, values } = read(input);
    const feeds = { [session.inputNames[0]]: new ort.Tensor('float32', Float32Array.from(values), dims) };
    tell(name, read('scores.npy'), (await session.run(feeds))[session.outputNames[0]].data);
}

const [, , command, ...rest] = process.argv;
({ inputs, compare, draw, answers })[command](...rest);
