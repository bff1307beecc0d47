/**
 * Compares a query with many vectors in one memory: the inner loop of `vector-rows.ts`.
 *
 * WebAssembly has the processor's vector instructions, JavaScript has not: of the built-in provider's vectors a thousand take
 * 0.06 ms so, and four times as long without. Where the module cannot be compiled (an x64 processor without AVX) the same is
 * done in JavaScript.
 *
 * @module
 */
import { functionsOn } from "./wasm.ts";

/**
 * For each entry from `entry` to `end` writes to `out`, an int32, the sum of products with the query, an int16 array.
 *
 * An entry is four uint32: where a vector's numbers begin; where they end and its pairs begin; what in the query belongs to
 * the first number; where the pairs end. The numbers are int8, a multiple of eight and at least eight; a pair is an uint16
 * place and an int16 number, as in `encoding.ts`. All are addresses in the memory, multiples of four.
 */
export type Compare = (entry: number, end: number, query: number, out: number) => void;

export function compareOn(memory: WebAssembly.Memory): Compare {
  return (functionsOn(memory, MODULE)?.["compare"] as Compare | undefined) ?? scriptCompare(memory);
}

export function scriptCompare(memory: WebAssembly.Memory): Compare {
  return (entry, end, query, out) => {
    const words = new Int32Array(memory.buffer);
    const small = new Int8Array(memory.buffer);
    const numbers = new Int16Array(memory.buffer);
    for (let e = entry / 4, o = out / 4; e < end / 4; e += 4, o++) {
      let sum = 0;
      const pairsAt = words[e + 1]!;
      for (let at = words[e]!, partner = words[e + 2]! / 2; at < pairsAt; at++, partner++) {
        sum = (sum + Math.imul(small[at]!, numbers[partner]!)) | 0;
      }
      for (let at = pairsAt / 4; at < words[e + 3]! / 4; at++) {
        sum = (sum + Math.imul(numbers[query / 2 + (words[at]! & 0xffff)]!, words[at]! >> 16)) | 0;
      }
      words[o] = sum;
    }
  };
}

// oxfmt-ignore
const MODULE = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,                                                 // (module
  0x01, 0x08, 0x01, 0x60, 0x04, 0x7f, 0x7f, 0x7f, 0x7f, 0x00,                                     //   (type (func (param i32 i32 i32 i32)))
  0x02, 0x11, 0x01, 0x02, 0x6a, 0x73, 0x06, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 0x02, 0x03, 0x01, //   (import "js" "memory"
  0x80, 0x80, 0x04,                                                                               //     (memory 1 65536 shared))
  0x03, 0x02, 0x01, 0x00,                                                                         //   (func is of type 0)
  0x07, 0x0b, 0x01, 0x07, 0x63, 0x6f, 0x6d, 0x70, 0x61, 0x72, 0x65, 0x00, 0x00,                   //   (export "compare" (func 0))
  0x0a, 0xd4, 0x01, 0x01, 0xd1, 0x01,                                                             //   (func (param $entry $end $query $out i32)
  0x02, 0x04, 0x7f, 0x01, 0x7b,                                                                   //     (local $at $stop $partner $pair i32) (local $sums v128)
  0x03, 0x40,                                                                                     //     loop over entries
  0xfd, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,                                     //       $sums = zeros
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x21, 0x08,                                     //
  0x20, 0x00, 0x28, 0x02, 0x00, 0x21, 0x04,                                                       //       $at = the entry's first
  0x20, 0x00, 0x28, 0x02, 0x04, 0x21, 0x05,                                                       //       $stop = its second
  0x20, 0x00, 0x28, 0x02, 0x08, 0x21, 0x06,                                                       //       $partner = its third
  0x03, 0x40,                                                                                     //       loop over numbers, eight at a time
  0x20, 0x08,                                                                                     //         $sums …
  0x20, 0x04, 0xfd, 0x01, 0x03, 0x00, 0x20, 0x06, 0xfd, 0x00, 0x04, 0x00,                         //         eight at $at, widened, eight at $partner
  0xfd, 0xba, 0x01, 0xfd, 0xae, 0x01, 0x21, 0x08,                                                 //         $sums = … + their products, two in each sum
  0x20, 0x04, 0x41, 0x08, 0x6a, 0x21, 0x04,                                                       //         $at += 8
  0x20, 0x06, 0x41, 0x10, 0x6a, 0x21, 0x06,                                                       //         $partner += 16
  0x20, 0x04, 0x20, 0x05, 0x49, 0x0d, 0x00, 0x0b,                                                 //         again while $at < $stop
  0x20, 0x08, 0xfd, 0x1b, 0x00, 0x20, 0x08, 0xfd, 0x1b, 0x01, 0x6a,                               //       $partner = the total of the four sums
  0x20, 0x08, 0xfd, 0x1b, 0x02, 0x6a, 0x20, 0x08, 0xfd, 0x1b, 0x03, 0x6a, 0x21, 0x06,             //
  0x20, 0x00, 0x28, 0x02, 0x0c, 0x21, 0x05,                                                       //       $stop = the entry's fourth
  0x20, 0x04, 0x20, 0x05, 0x49, 0x04, 0x40,                                                       //       if $at < $stop
  0x03, 0x40,                                                                                     //         loop over pairs
  0x20, 0x06,                                                                                     //           $partner …
  0x20, 0x02, 0x20, 0x04, 0x28, 0x02, 0x00, 0x22, 0x07,                                           //           $query, $pair = what is at $at
  0x41, 0xff, 0xff, 0x03, 0x71, 0x41, 0x01, 0x74, 0x6a, 0x2e, 0x01, 0x00,                         //           the query's number at its place
  0x20, 0x07, 0x41, 0x10, 0x75, 0x6c, 0x6a, 0x21, 0x06,                                           //           $partner = … + that times the pair's number
  0x20, 0x04, 0x41, 0x04, 0x6a, 0x22, 0x04, 0x20, 0x05, 0x49, 0x0d, 0x00,                         //           $at += 4, again while $at < $stop
  0x0b, 0x0b,                                                                                     //
  0x20, 0x03, 0x20, 0x06, 0x36, 0x02, 0x00,                                                       //       $partner is stored at $out
  0x20, 0x03, 0x41, 0x04, 0x6a, 0x21, 0x03,                                                       //       $out += 4
  0x20, 0x00, 0x41, 0x10, 0x6a, 0x22, 0x00, 0x20, 0x01, 0x49, 0x0d, 0x00,                         //       $entry += 16, again while $entry < $end
  0x0b, 0x0b,                                                                                     //     ))
);
