// Paper is white, and nothing opens on it: a page is printed as it looks by day, cards open.
const root = document.documentElement;
let onScreen = root.dataset.theme, closed = [];
addEventListener("beforeprint", () => {
  onScreen = root.dataset.theme;
  root.dataset.theme = "light";
  closed = [...document.querySelectorAll("details:is(.verdict, .answer):not([open])")];
  closed.forEach((card) => (card.open = true));
});
addEventListener("afterprint", () => {
  root.dataset.theme = onScreen;
  closed.forEach((card) => (card.open = false));
});

// An address that names a card opens it and the folds that it lies in, and shows it whatever is filtered.
function follow() {
  const card = document.getElementById(location.hash.slice(1));
  if (!card?.matches("details.verdict")) return;
  for (let fold = card; fold; fold = fold.parentElement.closest("details")) fold.open = true;
  if (card.hidden) card.hidden = card.closest("section").hidden = false;
  card.scrollIntoView();
}
addEventListener("DOMContentLoaded", follow);
addEventListener("hashchange", follow);

// Images further down wait for the page, not for the reader, where one may want to print: a
// browser that prints does not always wait for them.
addEventListener("load", () => {
  if (innerWidth < 960) return;
  setTimeout(() => fetchAll(document, "img[loading=lazy]:not(.thumb, [style*=none], .only-dark)"), 1500);
});
const fetchAll = (where, which) => where.querySelectorAll(which).forEach((picture) => (picture.loading = "eager"));
// So do a slider's other frames, until a hand or the focus comes to it.
for (const kind of ["pointerover", "focusin"]) addEventListener(kind, ({ target }) => {
  const frames = target.closest?.(".frames");
  if (frames) fetchAll(frames, root.dataset.theme == "dark" ? "img" : "img:not(.only-dark)");
});

// The search page lists pages while one types; the key Enter shows where in them the words stand.
addEventListener("DOMContentLoaded", () => {
  const input = document.querySelector(".bd-search-container input");
  input?.addEventListener("input", () => {
    if (!Search.hasIndex()) return;
    const found = Search._performSearch(...Search._parseQuery(input.value)).reverse();
    const list = document.createElement("ul"), said = document.createElement("p");
    list.className = "search";
    said.setAttribute("role", "status");
    said.textContent = input.value.trim() && (found.length ? "" : "Nothing found so far.");
    list.append(...found.slice(0, 12).map(([page, title, anchor]) => {
      const link = document.createElement("a"), item = document.createElement("li");
      link.href = `${page}.html${anchor}`;
      link.textContent = new DOMParser().parseFromString(title, "text/html").body.textContent;
      item.append(link);
      return item;
    }));
    document.getElementById("search-results").replaceChildren(said, list);
  });
});

// A figure, tapped, opens in its full size.
addEventListener("click", ({ target }) => {
  const full = target.closest?.("figure img") && target.closest("figure").querySelector(".take [download$='.png']");
  if (full) location = full.href;
});

// The button under a figure copies its citation, and says that it has.
addEventListener("DOMContentLoaded", () => {
  if (!window.ClipboardJS) return;
  const said = ({ trigger }) => (trigger.textContent = "citation copied");
  new ClipboardJS(".take button").on("success", said);
});

// A prediction: what the reader chooses is kept here and nowhere else, opens what happened, and is
// counted at the chapter's end. A bet on a claim is settled once the claim's verdict is open.
addEventListener("DOMContentLoaded", () => {
  const boxes = [...document.querySelectorAll(".predict")], key = `predicted ${location.pathname}`;
  const answers = [...document.querySelectorAll(".predict, details.answer")];
  const chosen = JSON.parse(localStorage.getItem(key) ?? "{}");
  const tally = document.createElement("p");
  tally.setAttribute("role", "status");
  if (boxes.length) document.querySelector(".bd-article > section").append(tally);
  const settled = ({ dataset: { claim } }) => !claim ||
    document.getElementById(`verdict-${claim}`)?.closest("details.answer")?.open;
  const show = () => {
    const made = boxes.map((box, i) => chosen[i] ?? 0);
    const told = boxes.map((box, i) => made[i] && settled(box));
    boxes.forEach((box, i) => box.querySelectorAll("li").forEach((item, j) => {
      item.firstChild.setAttribute("aria-pressed", made[i] == j + 1);
      item.className = told[i] && (j + 1 == box.dataset.right ? "right" : made[i] == j + 1 && "wrong");
    }));
    const right = boxes.filter((box, i) => told[i] && made[i] == box.dataset.right).length;
    const all = told.filter(Boolean).length;
    tally.textContent = all ? `Your predictions: ${right} of ${all} right.` : "";
  };
  boxes.forEach((box, i) => box.querySelectorAll("li").forEach((item, j) => {
    const button = document.createElement("button");
    button.append(...item.childNodes);
    item.append(button);
    if (button.querySelector("math")) button.ariaLabel = button.innerText; // not its TeX
    button.addEventListener("click", () => {
      chosen[i] ??= j + 1;
      localStorage.setItem(key, JSON.stringify(chosen));
      const next = answers[answers.indexOf(box) + 1];
      if (!box.dataset.claim && next?.matches("details")) next.open = true;
      show();
    });
  }));
  addEventListener("toggle", show, true);
  show();
});
