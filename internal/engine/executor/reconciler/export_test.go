package reconciler

import "context"

// OpenStill is Open without anything that runs by itself.
func OpenStill(ctx context.Context, c Config, k Cluster) (*Driver, error) {
	d := newDriver(c, k)
	return d, d.Refresh(ctx)
}

// Look looks once.
func (d *Driver) Look(ctx context.Context) error { return d.look(ctx) }

// StartWaiting hands over all that waits to be started.
func (d *Driver) StartWaiting(ctx context.Context) {
	for {
		select {
		case id := <-d.starts:
			d.start(ctx, id)
		default:
			return
		}
	}
}
