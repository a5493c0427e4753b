// The token that a caller was given, if any. It comes behind the `#` of the address, which no server ever sees,
// and leaves the address at once, so that it stands in no history and is not passed on with a copied link.

const KEY = "voice-agent.token";

/** Return the caller's token, or "". */
export function takeInvitation() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    remember(given);
    history.replaceState(null, "", location.pathname + location.search);
    return given;
  }
  return remembered();
}

// For this tab only, so that the page can be loaded again. A browser may refuse to store anything.
function remember(token) {
  try {
    sessionStorage.setItem(KEY, token);
  } catch {
    return;
  }
}

function remembered() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}
