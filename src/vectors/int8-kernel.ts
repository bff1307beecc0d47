/**
 * Multiplies 16 numbers of a query with those of many points, of one byte each: the inner loop of `int8-index.ts`.
 *
 * JavaScript has no access to the processor's vector instructions, WebAssembly has: a step takes 1.5 ns so, and ten times as
 * long without. The module is written out by hand, for it is a single loop. Where it cannot be compiled (an x64 processor
 * without AVX) the same is done in JavaScript.
 *
 * @module
 */
import { functionsOn } from "./wasm.ts";

/**
 * For each point from `point` to `to`, 16 bytes apart, adds its products with 16 int16 at `query` to four int32 at `sums`,
 * 16 bytes apart too; and with them those of 16 other numbers of the same points at `point2` with 16 int16 at `query2`, for
 * reading and writing the sums takes as long as a product. Only the total of the four means anything. All are addresses in
 * the memory.
 */
export type Kernel = (point: number, point2: number, to: number, sums: number, query: number, query2: number) => void;

export function kernelOn(memory: WebAssembly.Memory): Kernel {
  return (functionsOn(memory, MODULE)?.["step"] as Kernel | undefined) ?? scriptKernel(memory);
}

export function scriptKernel(memory: WebAssembly.Memory): Kernel {
  return (from, from2, to, sumsAt, queryAt, query2At) => {
    const query = new Int16Array(memory.buffer, queryAt, 16);
    const query2 = new Int16Array(memory.buffer, query2At, 16);
    const bytes = new Int8Array(memory.buffer);
    const sums = new Int32Array(memory.buffer);
    for (let point = from, point2 = from2, sum = sumsAt / 4; point < to; point += 16, point2 += 16, sum += 4) {
      let total = sums[sum] as number;
      for (let k = 0; k < 16; k++) {
        total += (query[k] as number) * (bytes[point + k] as number) + (query2[k] as number) * (bytes[point2 + k] as number);
      }
      sums[sum] = total;
    }
  };
}

// oxfmt-ignore
const MODULE = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,                                                 // (module
  0x01, 0x0a, 0x01, 0x60, 0x06, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x00,                         //   (type (func (param i32 i32 i32 i32 i32 i32)))
  0x02, 0x0e, 0x01, 0x02, 0x6a, 0x73, 0x06, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 0x02, 0x00, 0x01, //   (import "js" "memory" (memory 1))
  0x03, 0x02, 0x01, 0x00,                                                                         //   (func is of type 0)
  0x07, 0x08, 0x01, 0x04, 0x73, 0x74, 0x65, 0x70, 0x00, 0x00,                                     //   (export "step" (func 0))
  0x0a, 0x90, 0x01, 0x01, 0x8d, 0x01,                                                             //   (func (param $point $point2 $to $sums $query $query2 i32)
  0x01, 0x06, 0x7b,                                                                               //     (local $low $high $low2 $high2 $bytes $bytes2 v128)
  0x20, 0x04, 0xfd, 0x00, 0x04, 0x00, 0x21, 0x06,                                                 //     $low = the first 8 int16 at $query
  0x20, 0x04, 0xfd, 0x00, 0x04, 0x10, 0x21, 0x07,                                                 //     $high = the 8 after them
  0x20, 0x05, 0xfd, 0x00, 0x04, 0x00, 0x21, 0x08,                                                 //     $low2, $high2 = the same at $query2
  0x20, 0x05, 0xfd, 0x00, 0x04, 0x10, 0x21, 0x09,                                                 //
  0x03, 0x40,                                                                                     //     loop
  0x20, 0x03,                                                                                     //       at $sums …
  0x20, 0x03, 0xfd, 0x00, 0x04, 0x00,                                                             //       what is there
  0x20, 0x00, 0xfd, 0x00, 0x04, 0x00, 0x22, 0x0a,                                                 //       $bytes = 16 bytes at $point
  0xfd, 0x87, 0x01, 0x20, 0x06, 0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01,                               //       + the first 8 as int16, times $low
  0x20, 0x0a, 0xfd, 0x88, 0x01, 0x20, 0x07, 0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01,                   //       + the last 8 as int16, times $high
  0x20, 0x01, 0xfd, 0x00, 0x04, 0x00, 0x22, 0x0b,                                                 //       $bytes2 = 16 bytes at $point2
  0xfd, 0x87, 0x01, 0x20, 0x08, 0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01,                               //       + the first 8 as int16, times $low2
  0x20, 0x0b, 0xfd, 0x88, 0x01, 0x20, 0x09, 0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01,                   //       + the last 8 as int16, times $high2
  0xfd, 0x0b, 0x04, 0x00,                                                                         //       … is stored
  0x20, 0x03, 0x41, 0x10, 0x6a, 0x21, 0x03,                                                       //       $sums += 16
  0x20, 0x01, 0x41, 0x10, 0x6a, 0x21, 0x01,                                                       //       $point2 += 16
  0x20, 0x00, 0x41, 0x10, 0x6a, 0x22, 0x00,                                                       //       $point += 16
  0x20, 0x02, 0x49, 0x0d, 0x00,                                                                   //       again while $point < $to
  0x0b, 0x0b,                                                                                     //     ))
);
