package executor

import "context"

// Largest is the running attempt of those seen that takes up most of the disk,
// and how much that is; 0 where none is known to take up any.
func Largest(ctx context.Context, seen []Status, m Meter) (largest Handle, size int64) {
	for _, s := range seen {
		if s.Phase.Final() || s.Reason == Stopping {
			continue
		}
		if u, err := m.Usage(ctx, s.Handle); err == nil && u.Disk > size {
			largest, size = s.Handle, u.Disk
		}
	}
	return largest, size
}
