/**
 * Facts of a record, as one line of names and values.
 *
 * @module
 */
import type { ComponentChildren } from "preact";

/** A value of null is left out. */
export function Facts({ facts }: { facts: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(facts).map(
        ([name, value]) =>
          value !== null && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
