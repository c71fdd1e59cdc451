// What of a repository's address can be seen to be wrong as it is typed; the server has the last word.

/** refuseGit says what is wrong with the address of a repository. */
export function refuseGit(text: string): string | null {
  const git = text.trim();
  if (git === "") return null;
  if (/^https?:\/\/[^/]*@/.test(git)) return "Remove the username and password, and create a connection for them.";
  return /^(https?|ssh):\/\/[^/\s]+\/\S+$/.test(git) || /^([\w.-]+@)?[\w.-]+:[^/:\s]\S*$/.test(git)
    ? null
    : "Enter an address such as https://github.com/you/analysis.git.";
}

/** refuseRef says what is wrong with the name of a branch, a tag or a commit. */
export function refuseRef(text: string): string | null {
  const ref = text.trim();
  const wrong = ref.startsWith("-") || /\.\.|@\{|[\s~^:?*[\\]|\/\/|^\/|\/$|\.$|\.lock(\/|$)|(^|\/)\./.test(ref);
  return ref !== "" && wrong ? "Enter the name of a branch, a tag or a commit." : null;
}

/** refuseFolder says what is wrong with a folder of a repository. */
export function refuseFolder(text: string): string | null {
  const parts = text.trim().replace(/\/$/, "").split("/");
  const wrong = parts.some((part) => ["", ".", "..", ".git"].includes(part.toLowerCase())) || text.includes("\\");
  return text.trim() !== "" && wrong ? "Enter a folder in the repository, such as analysis/scripts." : null;
}

/** gitConnections lists the connections that can read a repository, and the one that is named even if it cannot. */
export function gitConnections(
  list: { id: string; name: string; type: string }[],
  named: string,
): { id: string; name: string }[] {
  const own = list.filter((each) => each.type === "git");
  return named === "" || own.some(({ id }) => id === named) ? own : [...own, { id: named, name: named }];
}
