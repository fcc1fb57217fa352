// The order of search results: guides first, then the reference, then pages about the inside.
var Scorer = {
  score: ([page, , , , score, , kind]) => {
    if (/^(architecture|operations|releasing|project|results|explanation)\b/.test(page)) return score / 4;
    if (/^(stability|migration|reference|gallery)\b/.test(page) && kind !== "object") return score / 2;
    return /^(index|quickstart|policies|loader|training-loop)$/.test(page) ? score * 1.5 : score;
  },
  // The full name of a class or function comes first, a part of one after pages.
  objNameMatch: 20,
  objPartialMatch: 2,
  objPrio: { 0: 4, 1: 2, 2: 0 },
  objPrioDefault: 0,
  // Sphinx's own numbers.
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
