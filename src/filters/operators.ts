/**
 * The operators of filters (pure).
 *
 * Numbers are compared with numbers and texts with texts; nothing else is before or after another. What is missing equals nothing, so that
 * `$ne` and `$nin` pass it.
 *
 * @module
 */
import type { JsonValue } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";
import type { MemberKind, Operand, Operator } from "./kinds.ts";
import { isEqual, isScalar } from "./member.ts";

/** Tells if a value passes; undefined stands for a member that is missing. */
type Test = (value: JsonValue | undefined) => boolean;
type Parsed = { readonly operand: Operand; readonly problem?: never } | { readonly problem: string; readonly operand?: never };

interface Definition {
  operandOf(value: JsonValue, kind: MemberKind): Parsed;
  test(operand: Operand, kind: MemberKind): Test;
}

function oneOperand(value: JsonValue, kind: MemberKind): Parsed {
  const operand = kind.operandOf(value);
  return operand === undefined ? { problem: `must be ${kind.expected}` } : { operand };
}

/** Several values; of a list they are items of it. */
function operands(value: JsonValue, kind: MemberKind): Parsed {
  const expected = `must be an array of at most ${LIMITS.filterValuesMax} values`;
  if (!Array.isArray(value) || value.length > LIMITS.filterValuesMax) return { problem: expected };
  const found = value.map((one) => (kind.isList === true ? (typeof one === "string" ? one : undefined) : kind.operandOf(one)));
  return found.every((one) => one !== undefined)
    ? { operand: found }
    : { problem: kind.isList === true ? `${expected}, each a text` : `${expected}, each ${kind.expected}` };
}

/** Several items that a list is to have. */
function items(value: JsonValue, kind: MemberKind): Parsed {
  const isRight = Array.isArray(value) && value.every((one) => (kind.isList === true ? typeof one === "string" : isScalar(one)));
  return isRight && value.length > 0 && value.length <= LIMITS.filterValuesMax
    ? { operand: value }
    : {
        problem: `must be an array of 1 to ${LIMITS.filterValuesMax} ${kind.isList === true ? "texts" : "texts, numbers, true, false or null"}`,
      };
}

/** A part of a text: short, since it is looked for at every place of a long one. */
function part(value: JsonValue): Parsed {
  const isRight = typeof value === "string" && codePointLength(value) <= LIMITS.filterPartLengthMax;
  return isRight ? { operand: value } : { problem: `must be a text of at most ${LIMITS.filterPartLengthMax} characters` };
}

/** A part of a text, or an item of an array. */
function partOrItem(value: JsonValue): Parsed {
  if (typeof value === "string") return part(value);
  return isScalar(value) ? { operand: value } : { problem: "must be a text, a number, true, false or null" };
}

const ordered = (isRight: (order: number) => boolean): Definition => ({
  operandOf: oneOperand,
  test: (operand) => (value) => {
    if (typeof value === "number" && typeof operand === "number") return isRight(value - operand);
    return typeof value === "string" && typeof operand === "string" && isRight(value < operand ? -1 : value > operand ? 1 : 0);
  },
});

const isAnyOf =
  (operand: Operand, { isList }: MemberKind): Test =>
  (value) => {
    const wanted = operand as JsonValue[];
    if (isList === true) return Array.isArray(value) && wanted.some((one) => value.includes(one));
    return wanted.some((one) => isEqual(value, one));
  };

export const OPERATORS: Readonly<Record<Operator, Definition>> = {
  $eq: { operandOf: oneOperand, test: (operand) => (value) => isEqual(value, operand) },
  $ne: { operandOf: oneOperand, test: (operand) => (value) => !isEqual(value, operand) },
  $gt: ordered((order) => order > 0),
  $gte: ordered((order) => order >= 0),
  $lt: ordered((order) => order < 0),
  $lte: ordered((order) => order <= 0),
  $in: { operandOf: operands, test: isAnyOf },
  $nin: {
    operandOf: operands,
    test(operand, kind) {
      const isIn = isAnyOf(operand, kind);
      return (value) => !isIn(value);
    },
  },
  $exists: {
    operandOf: (value) => (typeof value === "boolean" ? { operand: value } : { problem: "must be true or false" }),
    test: (operand) => (value) => (value !== undefined) === operand,
  },
  $all: {
    operandOf: items,
    test: (operand) => (value) => {
      if (!Array.isArray(value)) return false;
      const all = new Set(value);
      return (operand as JsonValue[]).every((one) => all.has(one));
    },
  },
  $contains: {
    operandOf: (value, kind) => {
      if (kind.isList === true) return typeof value === "string" ? { operand: value } : { problem: "must be a text" };
      return kind.operators.includes("$all") ? partOrItem(value) : part(value);
    },
    test: (operand) => (value) => {
      if (typeof value === "string") return typeof operand === "string" && value.includes(operand);
      return Array.isArray(value) && value.includes(operand);
    },
  },
  $starts_with: { operandOf: part, test: (operand) => (value) => typeof value === "string" && value.startsWith(operand as string) },
};

export function isOperator(name: string): name is Operator {
  return Object.hasOwn(OPERATORS, name);
}
