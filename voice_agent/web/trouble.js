// What went wrong, in words for the person who calls, with what to do about it.

/** Something that a person has to be told. */
export class Trouble extends Error {
  /**
   * @param {string} what one sentence: what is the matter
   * @param {string} remedy one or two sentences: what to do
   * @param {{code?: string, typing?: boolean, retry?: boolean}} more `typing`: the call can go on without a microphone
   */
  constructor(what, remedy, { code = "", typing = false, retry = false } = {}) {
    super(what);
    this.remedy = remedy;
    this.code = code;
    this.typing = typing;
    this.retry = retry;
  }
}

const AGAIN = "Try again in a moment.";
const INVITATION = "Open the page again with the link you were given, or ask for a new one.";

/** A microphone that cannot be had, by the name of the browser's error. */
export function microphoneTrouble(fault) {
  switch (fault.name) {
    case "NotAllowedError":
    case "SecurityError":
      return new Trouble(
        "The microphone is blocked for this page.",
        "Allow it in the address bar (the icon beside the address) or in your device's settings, then call again.",
        { code: "blocked", typing: true },
      );
    case "NotFoundError":
    case "OverconstrainedError":
      return new Trouble("No microphone was found.", "Connect one, or choose another under Sound, then call again.", {
        code: "missing",
        typing: true,
      });
    case "NotReadableError":
    case "AbortError":
      return new Trouble(
        "The microphone is in use by another program.",
        "Close the other program or tab that uses it, then call again.",
        { code: "in_use", typing: true },
      );
    default:
      return new Trouble("The microphone could not be opened.", AGAIN, { code: "microphone", typing: true });
  }
}

export function insecureTrouble() {
  return new Trouble(
    "Browsers give the microphone only to secure pages.",
    `Open this page with https://, or on the machine itself as http://localhost${location.port ? `:${location.port}` : ""}.`,
    { code: "insecure" },
  );
}

const REFUSALS = {
  unauthorized: ["This line is for invited callers.", INVITATION],
  bad_token: ["This invitation is not known here.", INVITATION],
  token_expired: ["This invitation has expired.", INVITATION],
  token_used: ["This invitation has been used: its call is over.", INVITATION],
  at_capacity: ["All lines are busy.", AGAIN],
  not_ready: ["The agent is still getting ready.", "Try again in a few seconds."],
  draining: ["The service is about to restart.", "Try again in a minute."],
  conversation_busy: ["This conversation is open in another call.", "End the other call first, then call again."],
  channel_off: ["Calls from the browser are switched off here.", "Ask whoever runs this service."],
  webrtc_missing: [
    "This service is not set up for calls from a browser.",
    "Whoever runs it has to install the extra 'webrtc'.",
  ],
  wrong_origin: ["This address is not allowed to call.", "Open the page under the service's own address."],
};

/** An answer of the service that is no success: HTTP status and `{code, message}`. */
export function refusalTrouble(status, { code = "", message = "" } = {}) {
  const known = REFUSALS[code];
  if (known) return new Trouble(...known, { code, retry: status === 503 });
  if (status === 503) return new Trouble("The line is busy.", AGAIN, { code: code || "busy", retry: true });
  return new Trouble("The call was not put through.", message || AGAIN, { code: code || "refused", retry: status >= 500 });
}

export function unreachableTrouble() {
  return new Trouble("The service cannot be reached.", "Check your connection, then call again.", {
    code: "unreachable",
    retry: true,
  });
}

export function mediaTrouble() {
  return new Trouble(
    "Sound does not get through between this device and the service.",
    "A firewall or VPN may be in the way. Try another network, or ask whoever runs the service.",
    { code: "no_media" },
  );
}

export function lostTrouble() {
  return new Trouble("The connection was lost.", "Check your connection, then call again.", { code: "lost" });
}
