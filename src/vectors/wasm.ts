/**
 * Runs what is written in WebAssembly.
 *
 * @module
 */
/**
 * The functions of a module that works on a memory, which it imports as `js.memory`.
 *
 * @returns undefined where the processor lacks the instructions
 */
export function functionsOn(memory: WebAssembly.Memory, module: Uint8Array<ArrayBuffer>): WebAssembly.Instance["exports"] | undefined {
  if (!WebAssembly.validate(module)) return undefined;
  return new WebAssembly.Instance(new WebAssembly.Module(module), { js: { memory } }).exports;
}
