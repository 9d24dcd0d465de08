// From a file to the bytes that a model takes. Nothing is sent anywhere.
function minivitImage() {
  "use strict";
  const LARGEST = 40e6; // bytes of a file
  const LONGEST = 32767; // pixels of a side that browsers can draw
  const SIDE = 768; // pixels of the shorter side that are left for the last, exact step

  /** A reader's file as bytes [height * width * channels], prepared as in training. */
  async function fromFile(file, { size, resize, mean }) {
    if (file.size > LARGEST) throw new Error("This file is larger than 40 MB. A smaller one will do.");
    let image, width, height, bytes;
    try {
      const { naturalWidth, naturalHeight } = await header(file);
      const shrink = Math.min(1, SIDE / Math.min(naturalWidth, naturalHeight));
      [width, height] = [naturalWidth * shrink, naturalHeight * shrink].map(Math.round);
      const smaller = { resizeWidth: width, resizeHeight: height, resizeQuality: "high" };
      if (Math.max(width, height) <= LONGEST) image = await createImageBitmap(file, shrink < 1 ? smaller : {});
    } catch {
      throw new Error("This file is no image that the browser can read: try a PNG, JPEG or WebP.");
    }
    if (!image) throw new Error("This image is too narrow.");
    const canvas = new OffscreenCanvas(width, height), context = canvas.getContext("2d");
    for (const ground of ["#fff", "#000"]) { // behind what is transparent; white ink needs the black
      context.fillStyle = ground;
      context.fillRect(0, 0, width, height);
      context.drawImage(image, 0, 0, width, height);
      const pixels = context.getImageData(0, 0, width, height);
      bytes = prepared(pixels, size, resize, mean.length);
      if (!isBlank(bytes)) break;
    }
    image.close();
    return bytes;
  }

  /** An image before it is decoded: its size is known. */
  function header(file) {
    const image = new Image(), address = URL.createObjectURL(file);
    return new Promise((resolve, reject) => {
      image.onload = () => resolve(image);
      image.onerror = reject;
      image.src = address;
    }).finally(() => URL.revokeObjectURL(address));
  }

  /** Whether nothing can be seen in an image: its pixels are alike, but for what JPEG adds. */
  const isBlank = (bytes) => bytes.every((v) => Math.abs(v - bytes[0]) < 8);

  /** Resized to cover a box, cropped in the middle, in one channel or three: Preprocess.fit. */
  function prepared({ data, width, height }, size, resize, channels) {
    let pixels = new Uint8Array(width * height * channels);
    for (let i = 0; i < width * height; i++) {
      const [r, g, b] = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
      if (channels == 1) pixels[i] = (19595 * r + 38470 * g + 7471 * b + 32768) >> 16; // as PIL
      else pixels.set([r, g, b], 3 * i);
    }
    const [h, w] = resize, wider = height * w <= width * h;
    const rows = wider ? h : Math.floor((w * height) / width);
    const columns = wider ? Math.floor((h * width) / height) : w;
    pixels = resized(pixels, height, width, columns, channels); // along rows, then along columns
    pixels = turned(resized(turned(pixels, height, channels), columns, height, rows, channels),
      columns, channels);
    const top = evenRound((rows - size[0]) / 2), left = evenRound((columns - size[1]) / 2);
    const cut = new Uint8Array(size[0] * size[1] * channels);
    for (let y = 0; y < size[0]; y++) {
      const from = ((top + y) * columns + left) * channels;
      cut.set(pixels.subarray(from, from + size[1] * channels), y * size[1] * channels);
    }
    return cut;
  }

  /** Halves go to the even neighbour, as in Python. */
  const evenRound = (x) => (x % 1 == 0.5 ? 2 * Math.round(x / 2) : Math.round(x));

  /** Rows and columns changed about. */
  function turned(pixels, rows, channels) {
    const columns = pixels.length / rows / channels, other = new Uint8Array(pixels.length);
    for (let y = 0; y < rows; y++) for (let x = 0; x < columns; x++) for (let c = 0; c < channels; c++) {
      other[(x * rows + y) * channels + c] = pixels[(y * columns + x) * channels + c];
    }
    return other;
  }

  /** Each row to a new length: bilinear, and averaging where it gets shorter, as PIL does. */
  function resized(pixels, rows, from, to, channels) {
    const found = new Uint8Array(rows * to * channels), scale = from / to;
    const reach = Math.max(scale, 1);
    for (let x = 0; x < to; x++) {
      const centre = (x + 0.5) * scale;
      const first = Math.max(0, Math.floor(centre - reach + 0.5));
      const last = Math.min(from, Math.floor(centre + reach + 0.5));
      const weights = [];
      for (let i = first; i < last; i++) {
        weights.push(Math.max(0, 1 - Math.abs((i + 0.5 - centre) / reach)));
      }
      const total = weights.reduce((a, b) => a + b, 0);
      for (let y = 0; y < rows; y++) for (let c = 0; c < channels; c++) {
        let sum = 0;
        weights.forEach((v, k) => (sum += v * pixels[(y * from + first + k) * channels + c]));
        found[(y * to + x) * channels + c] = Math.round(sum / total);
      }
    }
    return found;
  }

  /** Whether a grey image is dark on a light ground, by its edge: digits were light on dark. */
  function isOnPaper(bytes, width) {
    const rows = bytes.length / width, edge = [];
    bytes.forEach((v, i) => {
      const y = Math.floor(i / width), x = i % width;
      if (y == 0 || x == 0 || y == rows - 1 || x == width - 1) edge.push(v);
    });
    return edge.sort((a, b) => a - b)[edge.length >> 1] > 127;
  }

  return { fromFile, prepared, isBlank, isOnPaper };
}
