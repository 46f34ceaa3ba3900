// Messages of one connection in the order in which they came, and waiting for them with a limit.
const TIMEOUT = 15_000;
const QUIET = 1_000;

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what} within ${TIMEOUT} ms`)), TIMEOUT);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

export class Inbox {
  #messages = [];
  #waiting = [];

  put(message) {
    if (this.#waiting.length > 0) this.#waiting.shift()(message);
    else this.#messages.push(message);
  }

  next() {
    if (this.#messages.length > 0) return Promise.resolve(this.#messages.shift());
    return within(new Promise((resolve) => this.#waiting.push(resolve)), "message");
  }

  async none() {
    await pause(QUIET);
    if (this.#messages.length > 0) throw new Error(`unexpected: ${JSON.stringify({ ...this.#messages[0], delivery: undefined })}`);
  }
}
