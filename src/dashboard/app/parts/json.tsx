/**
 * JSON to read, and JSON to write: a plain text field that is checked while one types.
 *
 * @module
 */
import type { Signal } from "@preact/signals";
import { CopyButton } from "./copy.tsx";
import { Field } from "./form.tsx";

export function Json({ value, label = "JSON" }: { value: unknown; label?: string }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <div class="json">
      <CopyButton text={text} />
      {/* What scrolls has to be reachable by keyboard. */}
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

/** The object that a text says, or why it says none. */
export function parsedObject(text: string): { value?: object; wrong?: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value };
    return { wrong: "This has to be a JSON object: { … }" };
  } catch (error) {
    return { wrong: (error as Error).message };
  }
}

export function JsonField({ label, name, text, rows = 10 }: { label: string; name: string; text: Signal<string>; rows?: number }) {
  return (
    <Field label={label} name={name} wrong={parsedObject(text.value).wrong}>
      {(attributes) => (
        <textarea
          {...attributes}
          class="code"
          rows={rows}
          spellcheck={false}
          value={text.value}
          onInput={({ currentTarget }) => (text.value = currentTarget.value)}
        />
      )}
    </Field>
  );
}
