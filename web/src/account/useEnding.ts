import { useMutation, useQueryClient } from "@tanstack/react-query";

/** useEnding revokes something and reads its list again. */
export function useEnding(key: string, end: (id: string) => Promise<unknown>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: end, onSettled: () => client.invalidateQueries({ queryKey: [key] }) });
}
