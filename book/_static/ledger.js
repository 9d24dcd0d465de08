// The ledger's filters. What is asked stands in the address, so that it can be kept, sent and undone.
const form = document.querySelector(".ledger-filter");
const cards = [...document.querySelectorAll("details.verdict[data-word]")];
const texts = new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));
const total = form.querySelector("output");

/** The values asked for, by the name of the filter. */
function asked() {
  const found = {};
  for (const [name, value] of new FormData(form)) {
    if (value.trim()) (found[name] ??= []).push(value);
  }
  return found;
}

function meets(card, name, values) {
  if (name != "text") return values.includes(card.dataset[name]);
  return values[0].toLowerCase().trim().split(/\s+/).every((word) => texts.get(card).includes(word));
}

/** Shows the cards that meet all filters, and counts: what a filter's value would show. */
function show() {
  const filters = Object.entries(asked());
  const failed = new Map();
  for (const card of cards) {
    const no = filters.filter(([name, values]) => !meets(card, name, values)).map(([name]) => name);
    failed.set(card, no);
    card.hidden = no.length > 0;
  }
  const count = (name, value) => cards.filter(
    (card) => card.dataset[name] == value && failed.get(card).every((no) => no == name)).length;
  for (const box of form.querySelectorAll("input[type=checkbox]")) {
    box.parentElement.querySelector("[data-count]").textContent = count(box.name, box.value);
  }
  for (const option of form.querySelectorAll("option[data-label]")) {
    const name = option.parentElement.name;
    option.textContent = `${option.dataset.label} (${count(name, option.value)})`;
  }
  for (const chips of document.querySelectorAll(".topic-words")) {
    const section = chips.closest("section");
    const shown = [...section.querySelectorAll("details.verdict[data-word]")].filter((c) => !c.hidden);
    section.hidden = shown.length == 0;
    for (const chip of chips.children) {
      const number = shown.filter((card) => card.dataset.word == chip.dataset.word).length;
      chip.firstElementChild.textContent = number;
      chip.hidden = number == 0;
    }
  }
  const shown = cards.filter((card) => !card.hidden).length;
  total.textContent = `${shown} of ${cards.length} claims`;
}

/** Fills the form in from the address. */
function read() {
  const query = new URLSearchParams(location.search);
  for (const field of form.elements) {
    if (field.type == "checkbox") field.checked = query.getAll(field.name).includes(field.value);
    else if (field.name) field.value = query.get(field.name) ?? "";
  }
  const folded = form.querySelector(".filter-more");
  folded.open ||= [...form.elements].some((e) => e.name && query.has(e.name) && folded.contains(e));
  show();
}

/** Shows what the form asks for, and puts it into the address. */
function change(step = "pushState") {
  const query = new URLSearchParams();
  Object.entries(asked()).forEach(([name, values]) => values.forEach((v) => query.append(name, v)));
  history[step](null, "", query.size ? `?${query}` : location.pathname);
  show();
}

let typing = false; // one step back undoes a word, not a letter
form.addEventListener("input", (event) => {
  const letters = event.target.type == "search";
  change(letters && typing ? "replaceState" : "pushState");
  typing = letters;
});
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(change));
form.addEventListener("click", (event) => {
  const words = event.target.dataset.words?.split("|");
  if (!words) return;
  form.reset();
  form.querySelectorAll("[name=word]").forEach((box) => (box.checked = words.includes(box.value)));
});
addEventListener("popstate", () => {
  typing = false;
  read();
});
read();
if (location.search) form.scrollIntoView(); // who asks by an address wants the answer
