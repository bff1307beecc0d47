/**
 * Compares a query with many vectors as `scope.ts` lays them out: its inner loop.
 *
 * WebAssembly has the processor's vector instructions, JavaScript has not: this takes half the time. The sums are those of
 * `dot`, added in the same order, so the cosines are its to the last bit. The module is written out by hand, for it is two
 * loops. Where it cannot be compiled (an x64 processor without AVX) the same is done in JavaScript.
 *
 * @module
 */
import { functionsOn } from "./wasm.ts";

/**
 * For each entry from `entry` to `end` writes the cosine to `out`, a float64.
 *
 * An entry is four uint32. From the first to the second stand rows of 24 bytes: four float32, and of each as uint16 where in
 * the query, a float64 array, its partner is, in bytes. From the second to the third stand float32, whose partners stand one
 * after the other from the fourth on. The four numbers of a row, and of four that follow each other, go to four sums.
 *
 * All are addresses in the memory, multiples of four; there is at least one number from the second to the third.
 */
export type Compare = (entry: number, end: number, query: number, out: number) => void;

export function compareOn(memory: WebAssembly.Memory): Compare {
  return (functionsOn(memory, MODULE)?.["compare"] as Compare | undefined) ?? scriptCompare(memory);
}

export function scriptCompare(memory: WebAssembly.Memory): Compare {
  return (entry, end, query, out) => {
    const words = new Uint32Array(memory.buffer);
    const shorts = new Uint16Array(memory.buffer);
    const floats = new Float32Array(memory.buffer);
    const doubles = new Float64Array(memory.buffer);
    /** The number at an address, in bytes, times a partner's. */
    const product = (at: number, partnerAt: number) => (floats[at / 4] as number) * (doubles[partnerAt / 8] as number);
    for (let e = entry / 4, o = out / 8; e < end / 4; e += 4, o++) {
      let [s0, s1, s2, s3] = [0, 0, 0, 0];
      const numbersAt = words[e + 1] as number;
      for (let at = words[e] as number; at < numbersAt; at += 24) {
        s0 += product(at, query + (shorts[at / 2 + 8] as number));
        s1 += product(at + 4, query + (shorts[at / 2 + 9] as number));
        s2 += product(at + 8, query + (shorts[at / 2 + 10] as number));
        s3 += product(at + 12, query + (shorts[at / 2 + 11] as number));
      }
      const to = words[e + 2] as number;
      for (let at = numbersAt, partnerAt = words[e + 3] as number; at < to; at += 16, partnerAt += 32) {
        s0 += product(at, partnerAt);
        s1 += product(at + 4, partnerAt + 8);
        s2 += product(at + 8, partnerAt + 16);
        s3 += product(at + 12, partnerAt + 24);
      }
      doubles[o] = s0 + s1 + s2 + s3;
    }
  };
}

// oxfmt-ignore
const MODULE = Uint8Array.of(
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00,                                                 // (module
  0x01, 0x08, 0x01, 0x60, 0x04, 0x7f, 0x7f, 0x7f, 0x7f, 0x00,                                     //   (type (func (param i32 i32 i32 i32)))
  0x02, 0x0e, 0x01, 0x02, 0x6a, 0x73, 0x06, 0x6d, 0x65, 0x6d, 0x6f, 0x72, 0x79, 0x02, 0x00, 0x01, //   (import "js" "memory" (memory 1))
  0x03, 0x02, 0x01, 0x00,                                                                         //   (func is of type 0)
  0x07, 0x0b, 0x01, 0x07, 0x63, 0x6f, 0x6d, 0x70, 0x61, 0x72, 0x65, 0x00, 0x00,                   //   (export "compare" (func 0))
  0x0a, 0xb8, 0x02, 0x01, 0xb5, 0x02,                                                             //   (func (param $entry $end $query $out i32)
  0x02, 0x03, 0x7f, 0x02, 0x7b,                                                                   //     (local $at $stop $partner i32) (local $low $high v128)
  0x03, 0x40,                                                                                     //     loop over entries
  0xfd, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,                                     //       $low = zeros: the first two sums
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x21, 0x07,                                     //
  0xfd, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,                                     //       $high = zeros: the others
  0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x21, 0x08,                                     //
  0x20, 0x00, 0x28, 0x02, 0x00, 0x21, 0x04,                                                       //       $at = the entry's first
  0x20, 0x00, 0x28, 0x02, 0x04, 0x21, 0x05,                                                       //       $stop = its second
  0x20, 0x04, 0x20, 0x05, 0x49, 0x04, 0x40,                                                       //       if $at < $stop
  0x03, 0x40,                                                                                     //         loop over rows
  0x20, 0x07,                                                                                     //           $low …
  0x20, 0x04, 0xfd, 0x5d, 0x03, 0x00, 0xfd, 0x5f,                                                 //           the first two numbers as float64
  0x20, 0x02, 0x20, 0x04, 0x2f, 0x01, 0x12, 0x6a,                                                 //           where the second's partner is
  0x20, 0x02, 0x20, 0x04, 0x2f, 0x01, 0x10, 0x6a, 0xfd, 0x5d, 0x03, 0x00,                         //           the first's partner
  0xfd, 0x57, 0x03, 0x00, 0x01,                                                                   //           … and the second's
  0xfd, 0xf2, 0x01, 0xfd, 0xf0, 0x01, 0x21, 0x07,                                                 //           $low = … + the products
  0x20, 0x08,                                                                                     //           $high …
  0x20, 0x04, 0xfd, 0x5d, 0x03, 0x08, 0xfd, 0x5f,                                                 //           the same of the other two numbers
  0x20, 0x02, 0x20, 0x04, 0x2f, 0x01, 0x16, 0x6a,                                                 //
  0x20, 0x02, 0x20, 0x04, 0x2f, 0x01, 0x14, 0x6a, 0xfd, 0x5d, 0x03, 0x00,                         //
  0xfd, 0x57, 0x03, 0x00, 0x01,                                                                   //
  0xfd, 0xf2, 0x01, 0xfd, 0xf0, 0x01, 0x21, 0x08,                                                 //
  0x20, 0x04, 0x41, 0x18, 0x6a, 0x21, 0x04,                                                       //           $at += 24
  0x20, 0x04, 0x20, 0x05, 0x49, 0x0d, 0x00,                                                       //           again while $at < $stop
  0x0b, 0x0b,                                                                                     //
  0x20, 0x00, 0x28, 0x02, 0x08, 0x21, 0x05,                                                       //       $stop = the entry's third
  0x20, 0x00, 0x28, 0x02, 0x0c, 0x21, 0x06,                                                       //       $partner = its fourth
  0x03, 0x40,                                                                                     //       loop over numbers that follow each other
  0x20, 0x07,                                                                                     //         $low …
  0x20, 0x04, 0xfd, 0x5d, 0x03, 0x00, 0xfd, 0x5f,                                                 //         the first two as float64
  0x20, 0x06, 0xfd, 0x00, 0x04, 0x00,                                                             //         their partners
  0xfd, 0xf2, 0x01, 0xfd, 0xf0, 0x01, 0x21, 0x07,                                                 //         $low = … + the products
  0x20, 0x08,                                                                                     //         $high …
  0x20, 0x04, 0xfd, 0x5d, 0x03, 0x08, 0xfd, 0x5f,                                                 //         the same of the next two
  0x20, 0x06, 0xfd, 0x00, 0x04, 0x10,                                                             //
  0xfd, 0xf2, 0x01, 0xfd, 0xf0, 0x01, 0x21, 0x08,                                                 //
  0x20, 0x04, 0x41, 0x10, 0x6a, 0x21, 0x04,                                                       //         $at += 16
  0x20, 0x06, 0x41, 0x20, 0x6a, 0x21, 0x06,                                                       //         $partner += 32
  0x20, 0x04, 0x20, 0x05, 0x49, 0x0d, 0x00,                                                       //         again while $at < $stop
  0x0b,                                                                                           //
  0x20, 0x03,                                                                                     //       at $out …
  0x20, 0x07, 0xfd, 0x21, 0x00, 0x20, 0x07, 0xfd, 0x21, 0x01, 0xa0,                               //       the first sum and the second
  0x20, 0x08, 0xfd, 0x21, 0x00, 0xa0, 0x20, 0x08, 0xfd, 0x21, 0x01, 0xa0,                         //       and the third and the fourth
  0x39, 0x03, 0x00,                                                                               //       … are stored
  0x20, 0x03, 0x41, 0x08, 0x6a, 0x21, 0x03,                                                       //       $out += 8
  0x20, 0x00, 0x41, 0x10, 0x6a, 0x21, 0x00,                                                       //       $entry += 16
  0x20, 0x00, 0x20, 0x01, 0x49, 0x0d, 0x00,                                                       //       again while $entry < $end
  0x0b, 0x0b,                                                                                     //     ))
);
