// Writes vectors.json: views compressed by the reference encoder and what the reference decoder
// makes of them, for the decoder in inbetween-formats.
//
//     npm install meshoptimizer@1.3.0 && node make.mjs > vectors.json
import { MeshoptEncoder as encoder } from 'meshoptimizer/encoder';
import { MeshoptDecoder as decoder } from 'meshoptimizer/decoder';

await encoder.ready;
await decoder.ready;

// A small generator of its own, so that the file comes out the same every time.
let seed = 12345;
const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;

const vectors = [];
function add(name, mode, filter, count, stride, data) {
  const out = new Uint8Array(count * stride);
  decoder.decodeGltfBuffer(out, count, stride, data, mode, filter);
  const hex = (bytes) => Buffer.from(bytes).toString('hex');
  vectors.push({ name, mode, filter, count, byteStride: stride, data: hex(data), decoded: hex(out) });
}

function floats(n, f) {
  const a = new Float32Array(n);
  for (let i = 0; i < n; i++) a[i] = f(i);
  return a;
}

const bytes = (a) => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);
for (const version of [0, 1]) {
  for (const level of version ? [0, 1, 2, 3] : [2]) {
    const smooth = bytes(floats(300 * 3, (i) => Math.fround(Math.sin(i * 0.01) * 10)));
    add(`smooth floats v${version} level ${level}`, 'ATTRIBUTES', 'NONE', 300, 12,
      encoder.encodeVertexBufferLevel(smooth, 300, 12, level, version));
    const noise = new Uint8Array(700 * 4).map(() => random() * 256);
    add(`noise v${version} level ${level}`, 'ATTRIBUTES', 'NONE', 700, 4,
      encoder.encodeVertexBufferLevel(noise, 700, 4, level, version));
    const mixed = new Uint8Array(260 * 16).map((_, i) =>
      [i >> 6, 0, random() * 3, 200][i % 4] + (i % 16 > 11 ? random() * 256 : 0));
    add(`mixed v${version} level ${level}`, 'ATTRIBUTES', 'NONE', 260, 16,
      encoder.encodeVertexBufferLevel(mixed, 260, 16, level, version));
    const shorts = new Uint16Array(100 * 4).map((_, i) => 30000 + i * 17 + random() * 9);
    add(`shorts v${version} level ${level}`, 'ATTRIBUTES', 'NONE', 100, 8,
      encoder.encodeVertexBufferLevel(bytes(shorts), 100, 8, level, version));
    const sparse = new Uint8Array(512 * 4).map(() => (random() < 0.1 ? 1 : 0));
    add(`bits v${version} level ${level}`, 'ATTRIBUTES', 'NONE', 512, 4,
      encoder.encodeVertexBufferLevel(sparse, 512, 4, level, version));
  }
}
add('one element', 'ATTRIBUTES', 'NONE', 1, 4, encoder.encodeVertexBufferLevel(new Uint8Array([1, 2, 3, 4]), 1, 4, 2, 1));

const unit = (n) => {
  const a = floats(n * 4, () => random() * 2 - 1);
  for (let i = 0; i < n; i++) {
    const l = Math.hypot(...a.subarray(4 * i, 4 * i + 4));
    for (let c = 0; c < 4; c++) a[4 * i + c] /= l;
  }
  return a;
};
const filtered = (name, filter, count, stride, data) =>
  add(name, 'ATTRIBUTES', filter, count, stride, encoder.encodeVertexBufferLevel(data, count, stride, 2, 1));
for (const bits of [4, 12, 16])
  filtered(`quaternions of ${bits} bits`, 'QUATERNION', 90, 8, encoder.encodeFilterQuat(unit(90), 90, 8, bits));
const normals = (() => {
  const a = floats(90 * 4, () => random() * 2 - 1);
  for (let i = 0; i < 90; i++) {
    const l = Math.hypot(a[4 * i], a[4 * i + 1], a[4 * i + 2]);
    for (let c = 0; c < 3; c++) a[4 * i + c] /= l;
    a[4 * i + 3] = random() < 0.5 ? -1 : 1;
  }
  return a;
})();
filtered('normals in bytes', 'OCTAHEDRAL', 90, 4, encoder.encodeFilterOct(normals, 90, 4, 7));
filtered('normals in shorts', 'OCTAHEDRAL', 90, 8, encoder.encodeFilterOct(normals, 90, 8, 14));
const wide = floats(120 * 3, (i) => Math.fround((random() - 0.5) * Math.pow(10, (i % 9) - 4)));
filtered('floats of 12 bits', 'EXPONENTIAL', 120, 12, encoder.encodeFilterExp(wide, 120, 12, 12));
filtered('floats of 24 bits', 'EXPONENTIAL', 120, 12, encoder.encodeFilterExp(wide, 120, 12, 24));
const colors = floats(70 * 4, () => random());
filtered('colours in bytes', 'COLOR', 70, 4, encoder.encodeFilterColor(colors, 70, 4, 8));
filtered('colours in shorts', 'COLOR', 70, 8, encoder.encodeFilterColor(colors, 70, 8, 13));

const grid = [];
for (let y = 0; y < 9; y++)
  for (let x = 0; x < 9; x++) {
    const v = y * 10 + x;
    grid.push(v, v + 1, v + 10, v + 10, v + 1, v + 11);
  }
const scrambled = grid.map(() => Math.floor(random() * 100000));
for (const [name, list] of [['grid', grid], ['scrambled', scrambled]])
  for (const size of name === 'grid' ? [2, 4] : [4]) {
    const indices = bytes(size === 2 ? new Uint16Array(list) : new Uint32Array(list));
    add(`${name} triangles of ${size} bytes`, 'TRIANGLES', 'NONE', list.length, size,
      encoder.encodeIndexBuffer(indices, list.length, size));
    add(`${name} indices of ${size} bytes`, 'INDICES', 'NONE', list.length, size,
      encoder.encodeIndexSequence(indices, list.length, size));
  }
console.log(JSON.stringify({ made_by: 'testdata/meshopt/make.mjs, meshoptimizer 1.3.0', vectors }, null, 1));
