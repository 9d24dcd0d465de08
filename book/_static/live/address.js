// The state of a live model as the query of an address, which a teacher can link to: blocks, heads,
// rows and columns are counted from 1, as the page shows them.
function minivitAddress(model) {
  "use strict";
  const { grid, places, state, about: { config, classes }, samples, modes } = model;
  const place = (p) => `${Math.floor(p / grid[1]) + 1}.${(p % grid[1]) + 1}`;
  const key = (one) => one.split("/").map((i) => +i + 1).join(".");
  const middle = (grid[0] >> 1) * grid[1] + (grid[1] >> 1);

  /** The present state, without what is as at first. */
  function write() {
    const query = new URLSearchParams({ model: model.name });
    const set = (name, value) => value && query.set(name, value);
    set("image", state.sample === null ? "" : String(state.sample + 1));
    set("patch", state.query != middle && place(state.query));
    set("head", state.head && key(state.head));
    set("without", [...state.removed].map((one) => one.split("/")).map(([part, b]) => (b ? `${part}.${+b + 1}` : part)).join());
    set("off", [...state.heads].map(key).join());
    set("covered", [...state.covered].map(place).join());
    set("order", state.order.some((from, to) => from != to) && state.order.map((from) => from + 1).join());
    set("class", state.class !== null && classes[state.class]);
    set("tap", state.mode != modes[0] && state.mode);
    return query.toString().replaceAll("%2C", ",");
  }

  /** What a query asks for, as far as this model has it; all else is as at first. */
  function read(query) {
    const asked = new URLSearchParams(query), list = (name) => (asked.get(name) ?? "").split(",").filter(Boolean);
    const two = (text, most) => {
      const found = text.split(".").map((i) => i - 1);
      return found.length == 2 && found.every((v, i) => Number.isInteger(v) && v >= 0 && v < most[i]) ? found : null;
    };
    const placesOf = (name) => list(name).map((text) => two(text, grid)).filter(Boolean).map(([row, column]) => row * grid[1] + column);
    const headsOf = (name) => list(name).map((text) => two(text, [config.depth, config.heads])).filter(Boolean).map((one) => one.join("/"));
    const parts = ["attention", "mixing", "mlp", "norm", "residual"].flatMap((part) => Array.from({ length: config.depth }, (_, b) => [`${part}.${b + 1}`, `${part}/${b}`]));
    const known = { positions: "positions", ...Object.fromEntries(parts) };
    const order = list("order").map((i) => i - 1), image = Number(asked.get("image") ?? 1) - 1;
    const shuffled = [...order].sort((a, b) => a - b).every((from, i) => from == i) && order.length == places;
    return {
      image: samples[image] ? image : 0,
      values: {
        ...model.nothing(), ...(shuffled ? { order } : {}), query: placesOf("patch")[0] ?? middle, head: headsOf("head")[0] ?? null,
        heads: new Set(headsOf("off")), covered: new Set(placesOf("covered")), class: classes.includes(asked.get("class")) ? classes.indexOf(asked.get("class")) : null,
        removed: new Set(list("without").filter((part) => Object.hasOwn(known, part)).map((part) => known[part])),
        mode: modes.includes(asked.get("tap")) ? asked.get("tap") : modes[0], pointed: null, hovered: null,
      },
    };
  }

  /** Takes a state from a query; the image alone changes what has been covered or moved. */
  function go(query) {
    const { image, values } = read(query);
    return model.choose(image, values);
  }
  return { write, read, go };
}
