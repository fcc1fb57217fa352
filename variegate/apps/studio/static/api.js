// Calls of the server. Errors are Problems: a line of text, and the card that it is about.

export class Problem extends Error {
  constructor(message, card = null) {
    super(message);
    this.card = card;
  }
}

const page = crypto.randomUUID();

async function answer(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The studio does not answer. Is the command still running?");
  }
  if (response.ok) return response;
  if (response.status === 409) throw new DOMException("superseded", "AbortError");
  const told = await response.json().catch(() => ({ error: `The studio answered ${response.status}.` }));
  throw new Problem(told.error, told.card);
}

export const get = async (path) => (await answer(fetch(path))).json();

const post = (name, body, signal) =>
  answer(
    fetch(`/api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal,
    }),
  );

export const call = async (name, body) => (await post(name, body)).json();
export const blob = async (name, body) => (await post(name, body)).blob();

// Of calls that replace each other, one is under way at a time and the newest of the rest waits: while a slider
// moves, pictures follow it as fast as they are drawn, and none is drawn that nobody will see.
export class Newest {
  static generation = 0;
  #running = false;
  #waiting = null;

  async run(work) {
    if (this.#running) {
      this.#waiting?.(false);
      if (!(await new Promise((resolve) => (this.#waiting = resolve)))) return;
    }
    this.#running = true;
    try {
      await work();
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      this.#running = false;
      const next = this.#waiting;
      this.#waiting = null;
      next?.(true);
    }
  }
}

export const numbered = (body, view) => ({ ...body, page: `${page}-${view}`, generation: ++Newest.generation });
