// Package panics turns a panic into an error of the work that panicked, so that it ends
// neither the process nor the work of others.
package panics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Error is a panic. Whoever handles it logs the stack.
type Error struct {
	Value any
	Stack string
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Catch calls a function. A panic of the function becomes an Error. It catches no panic of
// goroutines that the function starts: each of those needs a Catch of its own.
func Catch(f func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &Error{Value: value, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// About returns what a log says of an error: the error and, of a panic, the stack.
func About(err error) []any {
	about := []any{slog.Any("error", err)}
	if panicked, ok := errors.AsType[*Error](err); ok {
		about = append(about, slog.String("stack", panicked.Stack))
	}
	return about
}

// Is reports whether an error is, or has among its causes, a panic.
func Is(err error) bool {
	_, panicked := errors.AsType[*Error](err)
	return panicked
}

// restartAfter is how long work that panicked rests before it begins again.
const restartAfter = time.Second

// Restart calls work that goes on until ctx ends. After a panic, which it logs, it calls
// the work again.
func Restart(ctx context.Context, log *slog.Logger, work func(context.Context)) {
	for {
		err := Catch(func() error { work(ctx); return nil })
		if err == nil {
			return
		}
		log.ErrorContext(ctx, "work in the background panicked, and begins again", About(err)...)
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartAfter):
		}
	}
}
