/**
 * Forms: one that says at which field the server found a fault, and is sent once however often it is clicked.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { createContext, type ComponentChildren } from "preact";
import { useContext, useId } from "preact/hooks";
import { CairnError } from "../api.ts";
import { Problem } from "./list.tsx";

/** The fault of the last try, for the field that it names. */
const Fault = createContext<CairnError | null>(null);

interface FormProps {
  /** Text of the button. */
  submit: string;
  /** The form stays as it is when this throws. */
  onSubmit: () => Promise<unknown>;
  danger?: boolean;
  disabled?: boolean;
  /** Comes after the button. */
  more?: ComponentChildren;
  children?: ComponentChildren;
}

export function Form({ submit, onSubmit, danger = false, disabled = false, more, children }: FormProps) {
  const busy = useSignal(false);
  const problem = useSignal<Error | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    if (busy.value) return;
    busy.value = true;
    try {
      await onSubmit();
      problem.value = null;
    } catch (error) {
      problem.value = error as Error;
    } finally {
      busy.value = false;
    }
  };
  const fault = problem.value instanceof CairnError ? problem.value : null;
  return (
    <form onSubmit={(event) => void send(event)}>
      <Fault.Provider value={fault}>{children}</Fault.Provider>
      {problem.value !== null && <Problem error={problem.value} />}
      <div class="row buttons">
        <button class={danger ? "danger" : "primary"} aria-busy={busy.value} disabled={disabled}>
          {submit}
        </button>
        {more}
      </div>
    </form>
  );
}

interface FieldProps {
  label: string;
  /** The name of the field in the API, by which an error finds it. */
  name: string;
  hint?: ComponentChildren | undefined;
  /** Problem of the value, as far as the page can tell. */
  wrong?: string | undefined;
  children: (attributes: {
    id: string;
    name: string;
    "aria-describedby": string | undefined;
    "aria-invalid": boolean;
  }) => ComponentChildren;
}

/** A labelled field; the control itself is made by `children`, with the attributes it is given. */
export function Field({ label, name, hint, wrong, children }: FieldProps) {
  const id = useId();
  const fault = useContext(Fault);
  const message = wrong ?? (fault?.param === name || fault?.param?.startsWith(`${name}.`) === true ? fault.message : undefined);
  const described = [hint !== undefined && `${id}-hint`, message !== undefined && `${id}-fault`].filter(Boolean).join(" ");
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, name, "aria-describedby": described === "" ? undefined : described, "aria-invalid": message !== undefined })}
      {hint !== undefined && (
        <p class="quiet hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {message !== undefined && (
        <p class="fault" id={`${id}-fault`}>
          {message}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps {
  label: string;
  name: string;
  value: Signal<string>;
  hint?: ComponentChildren;
  placeholder?: string;
  required?: boolean;
  /** More than one makes it a field of several lines. */
  rows?: number;
  /** Usual values; anything else can be written too. */
  suggestions?: readonly string[];
  wrong?: string | undefined;
  type?: "text" | "password" | "number" | "url" | "datetime-local";
}

export function TextField({ label, name, value, hint, rows = 1, suggestions, wrong, ...input }: TextFieldProps) {
  const listId = useId();
  const onInput = ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => (value.value = currentTarget.value);
  return (
    <Field label={label} name={name} hint={hint} wrong={wrong}>
      {(attributes) =>
        rows > 1 ? (
          <textarea {...attributes} {...input} rows={rows} value={value} onInput={onInput} />
        ) : (
          <>
            <input {...attributes} {...(input as object)} autoComplete="off" list={suggestions && listId} value={value} onInput={onInput} />
            {suggestions && (
              <datalist id={listId}>
                {suggestions.map((suggestion) => (
                  <option key={suggestion} value={suggestion} />
                ))}
              </datalist>
            )}
          </>
        )
      }
    </Field>
  );
}

export function ReasonField({ value, label = "Reason", name = "reason" }: { value: Signal<string>; label?: string; name?: string }) {
  return <TextField label={label} name={name} value={value} hint="Kept in the trace. Optional." />;
}

interface ChoiceFieldProps {
  label: string;
  name: string;
  value: Signal<string>;
  /** Label of each, by value. */
  choices: Readonly<Record<string, string>>;
  hint?: ComponentChildren;
}

export function ChoiceField({ label, name, value, choices, hint }: ChoiceFieldProps) {
  return (
    <Field label={label} name={name} hint={hint}>
      {(attributes) => (
        <select {...attributes} value={value} onChange={({ currentTarget }) => (value.value = currentTarget.value)}>
          {Object.entries(choices).map(([one, says]) => (
            <option key={one} value={one}>
              {says}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

interface ChecksFieldProps {
  label: string;
  name: string;
  /** Choices that are checked, in their order. */
  values: Signal<readonly string[]>;
  choices: Readonly<Record<string, string>>;
}

/** Some of a few. */
export function ChecksField({ label, name, values, choices }: ChecksFieldProps) {
  const fault = useContext(Fault);
  const toggle = (one: string, on: boolean) =>
    (values.value = Object.keys(choices).filter((choice) => (choice === one ? on : values.value.includes(choice))));
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      {Object.entries(choices).map(([one, says]) => (
        <label key={one} class="check">
          <input
            type="checkbox"
            name={name}
            value={one}
            checked={values.value.includes(one)}
            onChange={({ currentTarget }) => toggle(one, currentTarget.checked)}
          />
          {says}
        </label>
      ))}
      {fault?.param?.startsWith(name) === true && <p class="fault">{fault.message}</p>}
    </fieldset>
  );
}

export function CheckField({ label, name, value, hint }: { label: string; name: string; value: Signal<boolean>; hint?: string }) {
  return (
    <div class="field">
      <label class="check">
        <input type="checkbox" name={name} checked={value} onChange={({ currentTarget }) => (value.value = currentTarget.checked)} />
        {label}
      </label>
      {hint !== undefined && <p class="quiet hint">{hint}</p>}
    </div>
  );
}
