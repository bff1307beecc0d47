/**
 * Signing in with an API key. A sign-in link needs no screen; one that does not work is explained here.
 *
 * @module
 */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { signIn } from "../api.ts";
import { Field, Form } from "../parts/form.tsx";
import { Problem } from "../parts/list.tsx";
import { hasEnded } from "../session.ts";

/** Checks whether others on the way can read what is typed. Browsers keep loopback apart. */
const isReadable = () => !isSecureContext;

export function SignIn({ refused }: { refused: Error | null }) {
  const value = useSignal("");
  useEffect(() => void (document.title = "Sign in · Cairn"), []);
  return (
    <main class="sign-in">
      <h1>Cairn</h1>
      {refused !== null && (
        <>
          <Problem error={refused} />
          <p class="note">
            A link signs in once, within ten minutes. <code>cairn dashboard</code> prints another one.
          </p>
        </>
      )}
      {hasEnded.value && (
        <p class="note" role="status">
          You were signed out: the session has ended, or its key was revoked.
        </p>
      )}
      {isReadable() && (
        <p class="problem">This connection is not encrypted: others on the network can read the key. Use HTTPS, or a sign-in link.</p>
      )}
      <Form submit="Sign in" onSubmit={() => signIn(value.value.trim())}>
        <Field
          label="API key"
          name="key"
          hint={
            <>
              It is exchanged for a key of this browser, which ends in 12 hours or when you sign out. The command{" "}
              <code>cairn dashboard</code> prints a link that signs in without a key.
            </>
          }
        >
          {(attributes) => (
            <input
              {...attributes}
              type="password"
              autoComplete="off"
              autoFocus
              required
              placeholder="crn_…"
              value={value}
              onInput={({ currentTarget }) => (value.value = currentTarget.value)}
            />
          )}
        </Field>
      </Form>
    </main>
  );
}
