/**
 * A part of a file with its path, so that the first place that does not fit can be named.
 *
 * @module
 */
import { isObject } from "../../hook/transcript.ts";

/** Raised for the first place of a record that is not as its format says. */
export class OtherForm extends Error {}

const SHOWN_LENGTH = 60;

export class Part {
  readonly value: unknown;
  /** As in JavaScript: `qa[2].evidence`; empty for the record itself. */
  readonly path: string;

  constructor(value: unknown, path = "") {
    this.value = value;
    this.path = path;
  }

  /** A member, which may be missing. @throws {OtherForm} unless this is an object */
  member(name: string): Part {
    if (!isObject(this.value)) return this.refuse("an object");
    return new Part(this.value[name], this.path === "" ? name : `${this.path}.${name}`);
  }

  get isMissing(): boolean {
    return this.value === undefined || this.value === null;
  }

  /** Names of the members. @throws {OtherForm} unless this is an object */
  names(): string[] {
    return isObject(this.value) ? Object.keys(this.value) : this.refuse("an object");
  }

  text(): string {
    return typeof this.value === "string" ? this.value : this.refuse("a text");
  }

  /** The text of an id, which may be a number. */
  id(): string {
    return typeof this.value === "number"
      ? String(this.value)
      : typeof this.value === "string"
        ? this.value
        : this.refuse("a text or number");
  }

  items(): Part[] {
    if (!Array.isArray(this.value)) return this.refuse("an array");
    return (this.value as unknown[]).map((item, i) => new Part(item, `${this.path}[${i}]`));
  }

  /** @throws {OtherForm} always, with what came instead */
  refuse(expected: string): never {
    const came = this.value === undefined ? "nothing" : JSON.stringify(this.value);
    const shown = came.length > SHOWN_LENGTH ? `${came.slice(0, SHOWN_LENGTH)}…` : came;
    throw new OtherForm(`${this.path === "" ? "it" : this.path} must be ${expected}; got ${shown}`);
  }
}
