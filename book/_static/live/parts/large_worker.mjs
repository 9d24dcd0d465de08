// Runs the large ViT: fetches it and onnxruntime-web from this site, then gives, for the bytes of an
// image, its tokens after each block and where each head looks.
const FOLDER = new URL("../../large/", import.meta.url);

/** The content of a file that may be packed; servers differ in whether they unpack it. */
async function content(name, got) {
  const answer = await fetch(new URL(name, FOLDER));
  if (!answer.ok) throw new Error(`${name} could not be loaded.`);
  const counted = new TransformStream({
    transform(chunk, out) {
      got(chunk.length);
      out.enqueue(chunk);
    },
  });
  const held = await new Response(answer.body.pipeThrough(counted)).blob();
  const [first, second] = new Uint8Array(await held.slice(0, 2).arrayBuffer());
  const packed = first == 0x1f && second == 0x8b;
  const stream = packed ? held.stream().pipeThrough(new DecompressionStream("gzip")) : held.stream();
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function open() {
  let bytes = 0;
  const got = (more) => postMessage({ bytes: (bytes += more) });
  const names = ["model.onnx.gz", "ort-wasm-simd-threaded.wasm.gz"];
  const [model, program] = await Promise.all(names.map((name) => content(name, got)));
  const ort = await import(new URL("ort.wasm.min.mjs", FOLDER));
  Object.assign(ort.env.wasm, { wasmPaths: FOLDER.href, wasmBinary: program.buffer, numThreads: 1 });
  const session = await ort.InferenceSession.create(model);
  return (pixels, side) => session.run({ pixels: new ort.Tensor("uint8", pixels, [side, side, 3]) });
}

let run = null; // the promise of a function
onmessage = async ({ data: { pixels, side } }) => {
  try {
    const { tokens, weights } = await (await (run ??= open()))(pixels, side);
    postMessage({ answer: { pixels, tokens: tokens.data, weights: weights.data, dims: weights.dims } });
  } catch (error) {
    run = null; // so that it can be asked again
    postMessage({ error: error.message });
  }
};
