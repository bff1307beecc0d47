/**
 * LangGraph on Cairn: `CairnSaver` keeps the checkpoints of threads, `CairnStore` what graphs remember across threads.
 *
 * @example
 * const { documents } = new Cairn({ apiKey: "crn_…" });
 * const graph = builder.compile({ checkpointer: new CairnSaver(documents), store: new CairnStore(documents) });
 *
 * @module
 */
export { CairnSaver, type CairnSaverOptions } from "./langgraph/saver.ts";
export { CairnStore, type CairnStoreOptions } from "./langgraph/store.ts";
