/**
 * Changes as a list of paths. A sign and a word stand for each kind, so that its colour says nothing alone.
 *
 * @module
 */
import { pathText, type Change } from "../changes.ts";

const SIGNS = { added: "+", removed: "−", changed: "~", moved: "↕" } as const;
/** Longer values are cut here, and shown whole by opening them. */
const VALUE_LENGTH = 160;

export function Changes({ changes, unchanged = "Nothing changed." }: { changes: readonly Change[]; unchanged?: string }) {
  if (changes.length === 0) return <p class="quiet">{unchanged}</p>;
  return (
    <ul class="changes">
      {changes.map((change, index) => (
        <li key={index} class={change.kind}>
          <ChangeSign kind={change.kind} />
          <code class="path">{pathText(change.path)}</code>
          <span class="values">
            {"from" in change && <Value value={change.from} as="del" />}
            {change.kind === "changed" && (
              <span class="quiet" aria-hidden="true">
                →
              </span>
            )}
            {"to" in change && <Value value={change.to} as="ins" />}
            {change.kind === "moved" && <span class="quiet">moved to [{change.toIndex}]</span>}
          </span>
        </li>
      ))}
    </ul>
  );
}

export function ChangeSign({ kind }: { kind: Change["kind"] }) {
  return (
    <span class="sign" role="img" aria-label={kind}>
      {SIGNS[kind]}
    </span>
  );
}

export function Value({ value, as: Element }: { value: unknown; as: "del" | "ins" }) {
  const text = JSON.stringify(value);
  if (text.length <= VALUE_LENGTH) return <Element>{text}</Element>;
  return (
    <details>
      <summary>
        <Element>{text.slice(0, VALUE_LENGTH)} …</Element>
      </summary>
      <pre tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>
    </details>
  );
}
