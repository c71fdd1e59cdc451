// Package later does things beside whoever asks for them, one after the other.
package later

import "sync"

// Queue is what is still to be done. The zero value is ready to use.
type Queue struct {
	mu   sync.Mutex
	todo []func()
	busy bool
	idle sync.WaitGroup
}

// Do has something done after all that was asked for before.
func (q *Queue) Do(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.todo = append(q.todo, f)
	if !q.busy {
		q.busy = true
		q.idle.Go(q.work)
	}
}

// Wait returns when all that was asked for is done.
func (q *Queue) Wait() { q.idle.Wait() }

func (q *Queue) work() {
	for {
		q.mu.Lock()
		todo := q.todo
		q.todo = nil
		q.busy = len(todo) > 0
		q.mu.Unlock()
		if len(todo) == 0 {
			return
		}
		for _, f := range todo {
			f()
		}
	}
}
