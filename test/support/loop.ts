/**
 * What of the thread's time is left to others while something is done.
 *
 * @module
 */

/** How often the event loop goes round until the work is done: so often another request could have been answered. */
export async function roundsDuring(work: Promise<unknown>): Promise<number> {
  const stillThere = Symbol("not done yet");
  let rounds = 0;
  while ((await Promise.race([work, nextRound(stillThere)])) === stillThere) rounds++;
  return rounds;
}

function nextRound<Value>(value: Value): Promise<Value> {
  return new Promise((resolve) => setImmediate(resolve, value));
}
