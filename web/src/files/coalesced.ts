/** coalesced acts on a key at once, and answers all further calls for it that come during the pause with one more act after it. */
export function coalesced<Key>(act: (key: Key) => void, pause: number): (key: Key) => void {
  const calledAgain = new Map<Key, boolean>();
  const run = (key: Key) => {
    calledAgain.set(key, false);
    act(key);
    setTimeout(() => {
      const again = calledAgain.get(key);
      calledAgain.delete(key);
      if (again) run(key);
    }, pause);
  };
  return (key) => {
    if (calledAgain.has(key)) calledAgain.set(key, true);
    else run(key);
  };
}
