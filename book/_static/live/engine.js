// Vision transformers, Mixers and ResNets from pixels to logits, with what is met on the way.
//
// The arithmetic of minivit/networks in plain JavaScript, checked against it by tests/page. Images
// and maps are [height * width, channels], tokens [tokens, dim], both Float64Array in reading order.
// The file is one function that uses nothing outside it: a worker is made from its text, so that
// pages also work from a folder, where browsers load neither modules nor workers.
function minivitEngine() {
  "use strict";
  const NORM_EPS = 1e-6; // of LayerNorm, minivit's; BatchNorm has torch's default
  const BATCH_EPS = 1e-5;

  // ---- Models, as minivit.hub.page writes them

  /** What is said of a model, and its layers: `layers["blocks.0.mlp.up"].weight`. */
  function open({ numbers, ...model }) {
    let at = 0;
    model.layers = {};
    for (const [name, shape] of model.tensors) {
      const data = new Float64Array(shape.reduce((a, b) => a * b, 1));
      for (let i = 0; i < data.length; i++) data[i] = fromHalf(numbers.charCodeAt(at++));
      const dot = name.lastIndexOf(".");
      const layer = (model.layers[name.slice(0, Math.max(dot, 0))] ??= {});
      layer[name.slice(dot + 1)] = data;
      if (name.endsWith("weight")) layer.shape = shape;
    }
    return model;
  }

  /** The number that 16 bits stand for in half precision; all numbers of a model are finite. */
  function fromHalf(bits) {
    const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
    if (exponent == 0) return sign * fraction * 2 ** -24;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }

  // ---- Layers

  /** x [n, from] times the transpose of weight [to, from], plus bias [to]: [n, to]. */
  function linear(x, n, { weight, bias, shape }) {
    const to = shape[0], from = (weight.length / to) | 0; // | 0: an integer, and so a fast index
    const y = new Float64Array(n * to);
    let i = 0;
    for (; i + 1 < n; i += 2) { // two tokens and four outputs at once: each number is read less often
      const a = i * from, b = a + from;
      let o = 0;
      for (; o + 3 < to; o += 4) {
        const p = o * from, q = p + from, r = q + from, s = r + from;
        let ap = 0, aq = 0, ar = 0, as = 0, bp = 0, bq = 0, br = 0, bs = 0;
        for (let k = 0; k < from; k++) {
          const u = x[a + k], v = x[b + k];
          const wp = weight[p + k], wq = weight[q + k], wr = weight[r + k], ws = weight[s + k];
          ap += u * wp; aq += u * wq; ar += u * wr; as += u * ws;
          bp += v * wp; bq += v * wq; br += v * wr; bs += v * ws;
        }
        const one = i * to + o, two = one + to;
        y[one] = ap; y[one + 1] = aq; y[one + 2] = ar; y[one + 3] = as;
        y[two] = bp; y[two + 1] = bq; y[two + 2] = br; y[two + 3] = bs;
      }
      for (; o < to; o++) {
        y[i * to + o] = dot(x, a, weight, o * from, from);
        y[i * to + to + o] = dot(x, b, weight, o * from, from);
      }
    }
    for (; i < n; i++) {
      for (let o = 0; o < to; o++) y[i * to + o] = dot(x, i * from, weight, o * from, from);
    }
    if (bias) for (let j = 0; j < y.length; j++) y[j] += bias[j % to];
    return y;
  }

  function dot(a, i, b, j, length) {
    let sum = 0;
    for (let k = 0; k < length; k++) sum += a[i + k] * b[j + k];
    return sum;
  }

  /** Each row of x [n, d] with mean 0 and variance 1, times a scale, plus a shift. */
  function layerNorm(x, n, { weight, bias }) {
    const d = x.length / n, y = new Float64Array(x.length);
    for (let i = 0; i < n; i++) {
      let mean = 0, variance = 0;
      for (let k = 0; k < d; k++) mean += x[i * d + k] / d;
      for (let k = 0; k < d; k++) variance += (x[i * d + k] - mean) ** 2 / d;
      const scale = 1 / Math.sqrt(variance + NORM_EPS);
      for (let k = 0; k < d; k++) y[i * d + k] = (x[i * d + k] - mean) * scale * weight[k] + bias[k];
    }
    return y;
  }

  /** In place: each channel with the mean and variance that were met in training. */
  function batchNorm(x, { weight, bias, running_mean: mean, running_var: variance }) {
    const d = weight.length;
    const scale = weight.map((w, k) => w / Math.sqrt(variance[k] + BATCH_EPS));
    for (let j = 0; j < x.length; j++) x[j] = (x[j] - mean[j % d]) * scale[j % d] + bias[j % d];
    return x;
  }

  const relu = (x) => x.map((v) => (v > 0 ? v : 0));

  /** In place: x times the normal distribution function, by Abramowitz & Stegun 7.1.26. */
  function gelu(x) {
    for (let j = 0; j < x.length; j++) {
      const z = Math.abs(x[j]) / Math.SQRT2, t = 1 / (1 + 0.3275911 * z);
      const sum = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t
        + 0.254829592) * t; // the error function is within 1.5e-7
      const tail = 0.5 * sum * Math.exp(-z * z);
      x[j] *= x[j] > 0 ? 1 - tail : tail;
    }
    return x;
  }

  /** In place: numbers i to i + length become positive and sum to 1. */
  function softmax(x, i = 0, length = x.length) {
    let top = -Infinity, sum = 0;
    for (let k = i; k < i + length; k++) top = Math.max(top, x[k]);
    for (let k = i; k < i + length; k++) sum += x[k] = Math.exp(x[k] - top);
    for (let k = i; k < i + length; k++) x[k] /= sum;
    return x;
  }

  /** A convolution of a map, as a product with its neighbourhoods side by side. */
  function conv(map, layer, [down, across], padding) {
    const [, channels, rows, columns] = layer.shape;
    const height = Math.floor((map.height + 2 * padding - rows) / down) + 1;
    const width = Math.floor((map.width + 2 * padding - columns) / across) + 1;
    const size = channels * rows * columns;
    const near = new Float64Array(height * width * size); // zeros beyond the edge
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
      const to = (y * width + x) * size;
      for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) {
        const row = y * down + r - padding, column = x * across + c - padding;
        if (row < 0 || column < 0 || row >= map.height || column >= map.width) continue;
        const from = (row * map.width + column) * channels;
        for (let k = 0; k < channels; k++) {
          near[to + (k * rows + r) * columns + c] = map.data[from + k];
        }
      }
    }
    return { height, width, data: linear(near, height * width, layer) };
  }

  function transposed(x, n) {
    const d = x.length / n, y = new Float64Array(x.length);
    for (let i = 0; i < n; i++) for (let k = 0; k < d; k++) y[k * n + i] = x[i * d + k];
    return y;
  }

  const sum = (x, y) => x.map((v, j) => v + y[j]);

  /** The mean of the rows of x [n, d]. */
  function rowMean(x, n) {
    const mean = new Float64Array(x.length / n);
    for (let j = 0; j < x.length; j++) mean[j % mean.length] += x[j] / n;
    return mean;
  }

  /** All heads side by side, and what they are made of. `off` has the numbers of heads that add nothing. */
  function attention(x, n, layers, name, heads, off) {
    const d = (x.length / n) | 0, width = (d / heads) | 0;
    const qkv = linear(x, n, layers[`${name}.qkv`]); // [n, 3 * dim]: q, k and v of all heads
    const weights = new Float64Array(heads * n * n), z = new Float64Array(n * d);
    for (let h = 0; h < heads; h++) for (let i = 0; i < n; i++) {
      const row = (h * n + i) * n, query = i * 3 * d + h * width, out = i * d + h * width;
      for (let j = 0; j < n; j++) {
        weights[row + j] = dot(qkv, query, qkv, j * 3 * d + d + h * width, width) / Math.sqrt(width);
      }
      softmax(weights, row, n);
      if (off.has(h)) continue;
      for (let j = 0; j < n; j++) {
        const weight = weights[row + j], value = j * 3 * d + 2 * d + h * width;
        for (let k = 0; k < width; k++) z[out + k] += weight * qkv[value + k];
      }
    }
    return { weights, qkv, heads: z, out: linear(z, n, layers[`${name}.out`]) };
  }

  const mlp = (x, n, layers, name) =>
    linear(gelu(linear(x, n, layers[`${name}.up`])), n, layers[`${name}.down`]);

  // ---- Networks

  /**
   * A model's answer to an image, and what is met on the way.
   *
   * image: [height * width * channels], as `normalised` gives it.
   * switches.removed: pairs of a part and a list of blocks, null for all, as in minivit.remove.
   * switches.heads: pairs of a block and a head that adds nothing.
   * switches.order: for each place the number of the patch that is put there.
   * switches.covered: numbers of places that show the image's mean colour; after the order.
   *
   * Gives logits; states, the tokens (or maps) before the first block and after each; attention,
   * each block's weights [heads * tokens * tokens]; the image that was seen.
   */
  function forward(model, image, switches = {}) {
    const [height, width] = model.config.image_size;
    if (image.length != height * width * model.config.channels) {
      throw new Error(`expected ${height} x ${width} pixels of ${model.config.channels} channels: `
        + `got ${image.length} numbers`);
    }
    const seen = covered(model, reordered(model, image, switches.order), switches.covered);
    const map = { height, width, data: seen };
    return { seen, ...(model.family == "ResNet" ? resnet(model, map) : vit(model, map, switches)) };
  }

  function vit(model, map, switches) {
    const { config, layers } = model, gone = goneFrom(model, switches);
    let x = embedded(model, map);
    if (config.pool == "class") x = Float64Array.of(...layers[""].class_token, ...x);
    if (layers.positions && !gone("positions")) x = sum(x, layers.positions.table);
    const states = [x], weights = [];
    for (let i = 0; i < config.depth; i++) {
      for (const add of branches(model, i, switches)) {
        const found = add(x);
        if (found.weights) weights[i] = found.weights;
        x = gone("residual", i) ? found.out : sum(x, found.out);
      }
      states.push(x);
    }
    return { logits: answer(model, x, switches), states, attention: weights };
  }

  /**
   * The functions of tokens that a block adds to its tokens, in order: `out`, a part of the normed
   * tokens, and attention's `weights`. Each knows its `part`. One that is gone adds nothing, and
   * without the residual connection hands on its normed tokens.
   */
  function branches(model, i, switches = {}) {
    const { config, layers } = model, gone = goneFrom(model, switches);
    const off = new Set((switches.heads ?? []).filter(([b]) => b == i).map(([, head]) => head));
    const mixing = model.family == "Mixer" ? "mixing" : "attention";
    const parts = config.first == "mlp" ? ["mlp", mixing] : [mixing, "mlp"];
    const add = (part, k) => (x) => {
      const n = x.length / config.dim, name = `blocks.${i}.${part}`, norm = `norm${k + 1}`;
      const y = normed(model, x, n, `blocks.${i}.${norm}`, part, gone(norm, i));
      if (gone(part, i)) return { out: y };
      if (part == "attention") return attention(y, n, layers, name, config.heads, off);
      if (part == "mlp") return { out: mlp(y, n, layers, name) };
      return { out: transposed(mlp(transposed(y, n), config.dim, layers, name), config.dim) };
    };
    return parts.map((part, k) => Object.assign(add(part, k), { part }))
      .filter(({ part }) => !gone(part, i) || gone("residual", i));
  }

  /** Whether a part of a block, or of the whole model, has been taken out. */
  function goneFrom(model, switches) {
    const steps = [...model.removed, ...(switches.removed ?? [])];
    return (part, block = null) => steps.some(([name, blocks]) =>
      (name == part || (name == "norm" && /^norm\d$/.test(part)))
        && (blocks === null || blocks.includes(block)));
  }

  function embedded(model, map) {
    const { layers, config } = model;
    if (config.stem != "conv") {
      return conv(map, layers["patch_embedding.projection"], config.patch_size, 0).data;
    }
    for (let i = 0; layers[`patch_embedding.layers.${i}`]; i += 3) { // convolution, norm, ReLU
      map = conv(map, layers[`patch_embedding.layers.${i}`], [2, 2], 1);
      map.data = relu(batchNorm(map.data, layers[`patch_embedding.layers.${i + 1}`]));
    }
    return conv(map, layers["patch_embedding.projection"], [1, 1], 0).data;
  }

  function normed(model, x, n, name, part, gone) {
    if (gone) return x;
    if (part != "mixing" || model.config.mixing_norm == "channels") {
      return layerNorm(x, n, model.layers[name]);
    }
    return transposed(layerNorm(transposed(x, n), x.length / n, model.layers[name]), x.length / n);
  }

  /** The logits that the head reads from tokens: final norm, pool, head. */
  function answer(model, x, switches) {
    const { config, layers } = model, n = x.length / config.dim;
    const y = goneFrom(model, switches)("norm") ? x : layerNorm(x, n, layers.norm);
    const pooled = config.pool == "class" ? y.subarray(0, config.dim) : rowMean(y, n);
    return linear(pooled, 1, layers.head);
  }

  function resnet(model, map) {
    const { config, layers } = model;
    const cleaned = (map, name) => ({ ...map, data: batchNorm(map.data, layers[name]) });
    let x = cleaned(conv(map, layers["stem.conv"], [1, 1], 1), "stem.norm");
    x.data = relu(x.data);
    const states = [x];
    const first = config.stages.map((_, s) => config.stages.slice(0, s).reduce((a, b) => a + b, 0));
    for (let i = 0; layers[`blocks.${i}.conv1`]; i++) {
      const name = `blocks.${i}`, shortcut = layers[`${name}.shortcut.0`];
      const stride = i > 0 && first.includes(i) ? [2, 2] : [1, 1]; // half the size from stage to stage
      let y = cleaned(conv(x, layers[`${name}.conv1`], stride, 1), `${name}.norm1`);
      y.data = relu(y.data);
      y = cleaned(conv(y, layers[`${name}.conv2`], [1, 1], 1), `${name}.norm2`);
      if (config.residual) {
        const past = shortcut ? cleaned(conv(x, shortcut, stride, 0), `${name}.shortcut.1`) : x;
        y.data = sum(y.data, past.data);
      }
      x = { ...y, data: relu(y.data) };
      states.push(x);
    }
    const pooled = rowMean(x.data, x.height * x.width);
    return { logits: linear(pooled, 1, layers.head), states, attention: [] };
  }

  // ---- What is read from a trace

  /** What the head would answer after each block: the logit lens. One row a state, of logits. */
  const lens = (model, trace, switches = {}) =>
    trace.states.map((x) => answer(model, x, switches));

  /** How much the output takes from each patch if attention were all: rollout, a row a block. */
  function rollout(model, trace) {
    const n = trace.states[0].length / model.config.dim, extra = n - patchesOf(model).length;
    let product = new Float64Array(n * n).map((_, j) => (j % (n + 1) == 0 ? 1 : 0));
    return trace.attention.map((weights) => {
      const heads = weights.length / n / n;
      const mixed = new Float64Array(n * n).map((_, j) => {
        let mean = 0;
        for (let h = 0; h < heads; h++) mean += weights[h * n * n + j] / heads;
        return 0.5 * mean + (j % (n + 1) == 0 ? 0.5 : 0);
      });
      product = linear(mixed, n, { weight: transposed(product, n), shape: [n, n] });
      const row = (extra ? product.slice(0, n) : rowMean(product, n)).subarray(extra);
      const total = row.reduce((a, b) => a + b, 0);
      return row.map((v) => v / total);
    });
  }

  /** By how much each logit falls when one of some patches is covered: [places][classes]. */
  function deletion(model, image, switches = {}, places = patchesOf(model).map((_, place) => place)) {
    const { logits } = forward(model, image, switches);
    return places.map((place) => {
      const hidden = [...(switches.covered ?? []), place];
      const without = forward(model, image, { ...switches, covered: hidden }).logits;
      return logits.map((v, c) => v - without[c]);
    });
  }

  // ---- Images

  /** Bytes [height * width * channels] as the model was shown them in training. */
  function normalised(model, bytes) {
    const { mean, std } = model.preprocess, c = mean.length;
    return Float64Array.from(bytes, (v, j) => (v / 255 - mean[j % c]) / std[j % c]);
  }

  /** For each patch, in reading order, where its numbers stand in an image; a ResNet has none. */
  function patchesOf(model) {
    const { image_size: [height, width], patch_size: patch, channels } = model.config;
    if (!patch) return [];
    const places = [];
    for (let y = 0; y < height; y += patch[0]) for (let x = 0; x < width; x += patch[1]) {
      const indices = [];
      for (let r = y; r < y + patch[0]; r++) {
        const start = (r * width + x) * channels;
        for (let k = 0; k < patch[1] * channels; k++) indices.push(start + k);
      }
      places.push(indices);
    }
    return places;
  }

  function reordered(model, image, order) {
    if (!order) return image;
    const places = patchesOf(model), moved = image.slice();
    order.forEach((from, to) => places[to].forEach((j, k) => (moved[j] = image[places[from][k]])));
    return moved;
  }

  function covered(model, image, hidden = []) {
    const { channels } = model.config, places = patchesOf(model), left = image.slice();
    const colour = rowMean(image, image.length / channels);
    for (const place of hidden) for (const j of places[place]) left[j] = colour[j % channels];
    return left;
  }

  return {
    open, forward, branches, lens, rollout, deletion, normalised, patchesOf, softmax, linear, transposed,
    goneFrom, layerNorm, attention, mlp,
  };
}
