// How the search page orders what it finds: verdicts are in the ledger, words in the glossary, and of
// pages that are equally good, chapters come in their order.
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2, // Sphinx's own
  score([page, , , , score]) {
    const asked = document.querySelector(".bd-search-container input").value;
    const verdicts = /\b(refut|wrong|right|true|false|myth|claim|verdict|hold)/i.test(asked);
    const better = { "book/ledger": verdicts ? 30 : 0, "book/glossary": 6 }[page] ?? 0;
    const number = /^book\/(\d\d)_/.exec(page)?.[1] ?? 99;
    return score + better - number / 1000 - (page.startsWith("book/solutions") ? 3 : 0);
  },
};
