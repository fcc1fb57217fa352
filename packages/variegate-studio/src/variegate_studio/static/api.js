// Calls of the server. Errors are Problems: a line of text, and the card that it is about.

export class Problem extends Error {
  constructor(message, card = null) {
    super(message);
    this.card = card;
  }
}

const page = crypto.randomUUID();
const PATIENCE_MS = 150;

async function answer(request) {
  const response = await request.catch(() => {
    throw new Problem("The studio does not answer. Is the command still running?");
  });
  if (response.ok) return response;
  const text = await response.text();
  if (!response.headers.get("Content-Type")?.includes("json")) {
    throw new Problem(response.status === 403 ? text : `The studio answered ${response.status}.`);
  }
  const told = JSON.parse(text);
  throw new Problem(told.error, told.card);
}

export const get = async (path) => (await answer(fetch(path))).json();

const post = (name, body) =>
  answer(
    fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }),
  );

export async function call(name, body) {
  const found = await (await post(name, body)).json();
  if (found.superseded) throw new DOMException("superseded", "AbortError");
  return found;
}

export const blob = async (name, body) => (await post(name, body)).blob();

// Of calls that replace each other, one is under way at a time and the newest of the rest waits: while a slider
// moves, pictures follow it as fast as they are drawn. One that takes longer is not waited for: the server ends it as
// soon as it has a newer one.
export class Newest {
  static generation = 0;
  #turn = 0;
  #ready = Promise.resolve();

  async run(work) {
    const turn = ++this.#turn;
    await Promise.race([this.#ready, new Promise((resolve) => setTimeout(resolve, PATIENCE_MS))]);
    if (turn !== this.#turn) return;
    const done = work().catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
    this.#ready = done.catch(() => {});
    await done;
  }
}

export const numbered = (body, view) => ({ ...body, page: `${page}-${view}`, generation: ++Newest.generation });
