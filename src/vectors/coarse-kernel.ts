/**
 * Multiplies 16 numbers of a query with those of many points, of one byte each: the inner loop of `coarse.ts`.
 *
 * JavaScript has no access to the processor's vector instructions, WebAssembly has: a step takes 1.5 ns so, and ten times as
 * long without. The module is written out by hand, for it is a single loop. Where it cannot be compiled (an x64 processor
 * without AVX) the same is done in JavaScript.
 *
 * @module
 */

/**
 * For each point from `point` to `to`, 16 bytes apart, adds its products with 16 int16 at `query` to four int32 at `sums`,
 * 16 bytes apart too. Only the total of the four means anything. All are addresses in the memory.
 */
export type Kernel = (point: number, to: number, sums: number, query: number) => void;

export function kernelOn(memory: WebAssembly.Memory): Kernel {
  return vectorKernel(memory) ?? scriptKernel(memory);
}

/** @returns undefined where the processor lacks the instructions */
function vectorKernel(memory: WebAssembly.Memory): Kernel | undefined {
  if (!WebAssembly.validate(MODULE)) return undefined;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(MODULE), { js: { memory } });
  return exports["step"] as Kernel;
}

export function scriptKernel(memory: WebAssembly.Memory): Kernel {
  return (from, to, sumsAt, queryAt) => {
    const query = new Int16Array(memory.buffer, queryAt, 16);
    const bytes = new Int8Array(memory.buffer);
    const sums = new Int32Array(memory.buffer);
    for (let point = from, sum = sumsAt / 4; point < to; point += 16, sum += 4) {
      let total = sums[sum] as number;
      for (let k = 0; k < 16; k++) total += (query[k] as number) * (bytes[point + k] as number);
      sums[sum] = total;
    }
  };
}

// oxfmt-ignore
const MODULE = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,                                // (module
  0x01, 0x08, 1, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 0,                             //   (type (func (param i32 i32 i32 i32)))
  0x02, 0x0e, 1, 2, 0x6a, 0x73, 6, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 2, 0, 1,  //   (import "js" "memory" (memory 1))
  0x03, 0x02, 1, 0,                                                              //   (func is of type 0)
  0x07, 0x08, 1, 4, 0x73, 0x74, 0x65, 0x70, 0, 0,                                //   (export "step" (func 0))
  0x0a, 0x58, 1, 0x56,                                                           //   (func (param $point $to $sums $query i32)
  1, 3, 0x7b,                                                                    //     (local $low $high $bytes v128)
  0x20, 3, 0xfd, 0x00, 4, 0, 0x21, 4,                                            //     $low = the first 8 int16 at $query
  0x20, 3, 0xfd, 0x00, 4, 16, 0x21, 5,                                           //     $high = the 8 after them
  0x03, 0x40,                                                                    //     loop
  0x20, 2,                                                                       //       at $sums …
  0x20, 2, 0xfd, 0x00, 4, 0,                                                     //       what is there
  0x20, 0, 0xfd, 0x00, 4, 0, 0x22, 6,                                            //       $bytes = 16 bytes at $point
  0xfd, 0x87, 0x01, 0x20, 4, 0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01,                 //       + the first 8 as int16, times $low
  0x20, 6, 0xfd, 0x88, 0x01, 0x20, 5, 0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01,        //       + the last 8 as int16, times $high
  0xfd, 0x0b, 4, 0,                                                              //       … is stored
  0x20, 2, 0x41, 16, 0x6a, 0x21, 2,                                              //       $sums += 16
  0x20, 0, 0x41, 16, 0x6a, 0x22, 0,                                              //       $point += 16
  0x20, 1, 0x49, 0x0d, 0,                                                        //       again while $point < $to
  0x0b, 0x0b,                                                                    //     ))
);
