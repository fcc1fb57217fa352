// The order of search results: guides first, then the reference, then pages about the inside.
var Scorer = {
  score: ([page, , , , score, , kind]) => {
    if (/^(architecture|operations|releasing|project|results|explanation)\b/.test(page)) return score / 4;
    if (/^(stability|migration|reference|gallery)\b/.test(page) && kind !== "object") return score / 2;
    return /^(index|quickstart|policies|loader|training-loop)$/.test(page) ? score * 1.5 : score;
  },
  // Sphinx's own numbers.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
