/**
 * Consent: an application asks for access, and who is signed in decides. What it says of itself is shown as its own words; the hosts are
 * what the server has checked.
 *
 * @module
 */
import { useSignal, type Signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { api, type OAuthRequest } from "../api.ts";
import { Facts } from "../parts/facts.tsx";
import { ChecksField, Form, TextField } from "../parts/form.tsx";
import { Loaded } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { useQuery } from "../query.ts";

const SCOPES = { read: "Read: records, searches, contexts", write: "Write: add, change and delete records" };

/** Parameters that an application sends. The rest of a consent is the person's choice, which no link may fill in unseen. */
const PARAMETERS = "client_id redirect_uri response_type code_challenge code_challenge_method scope state resource".split(" ");

/** The request as the application sent it, which the server hands on behind the `#`. */
function useAsked(): Record<string, string> {
  return useMemo(() => {
    const asked = [...new URLSearchParams(location.hash.slice(1))].filter(([name]) => PARAMETERS.includes(name));
    return { resource: `${location.origin}/mcp`, ...Object.fromEntries(asked) };
  }, []);
}

export default function Authorize() {
  const asked = useAsked();
  const request = useQuery({
    queryKey: ["oauth", asked],
    staleTime: Infinity,
    queryFn: () => api.describeOAuthRequest(asked),
  });
  return (
    <Page title="Connect an application">
      <Loaded result={request}>{(request) => <Consent asked={asked} request={request} />}</Loaded>
    </Page>
  );
}

function Consent({ asked, request }: { asked: Record<string, string>; request: OAuthRequest }) {
  const scopes = useSignal<readonly string[]>(request.scopes);
  const user = useSignal("");
  const agent = useSignal("");
  const days = useSignal("90");
  const connect = async () => {
    const { redirect_to } = await api.connectApplication({
      ...asked,
      scopes: scopes.value,
      expires_in_days: Number(days.value),
      ...(user.value !== "" && { user_id: user.value }),
      ...(agent.value !== "" && { agent_id: agent.value }),
    });
    location.assign(redirect_to);
  };
  return (
    <>
      <Asks request={request} />
      <Form
        submit="Connect"
        onSubmit={connect}
        disabled={scopes.value.length === 0}
        more={
          <button type="button" onClick={() => location.assign(request.denial)}>
            Refuse
          </button>
        }
      >
        <ChecksField
          label="Scopes"
          name="scopes"
          values={scopes}
          choices={Object.fromEntries(request.scopes.map((one) => [one, SCOPES[one]]))}
        />
        <TextField
          label="Bound to user"
          name="user_id"
          value={user}
          hint="It sees and changes only the records of this user. Empty: of all users."
        />
        <TextField
          label="Bound to agent"
          name="agent_id"
          value={agent}
          hint="It sees and changes only the records of this agent. Empty: of all agents."
        />
        <DaysField value={days} refreshes={request.refreshes} />
      </Form>
    </>
  );
}

function Asks({ request }: { request: OAuthRequest }) {
  return (
    <>
      <p>
        <b>{request.client_name}</b> asks for access to the memories and sessions of this server. Connect it only if you have just asked it
        to.
      </p>
      <Facts
        facts={{
          "Says it is": request.client_name,
          "Known by": request.client_host ?? "nobody: it registered itself",
          "The answer goes to": request.redirect_host,
          Opens: request.resource,
        }}
      />
      {request.redirects_to_this_machine && (
        <p class="note">The answer goes to a program on this machine, and any program here could be the one that asks.</p>
      )}
    </>
  );
}

function DaysField({ value, refreshes }: { value: Signal<string>; refreshes: boolean }) {
  return (
    <TextField
      label="Days"
      name="expires_in_days"
      type="number"
      value={value}
      required
      hint={refreshes ? "Until it has to ask again, 365 at most; unused for 30 days it ends." : "It asks again after an hour in any case."}
    />
  );
}
