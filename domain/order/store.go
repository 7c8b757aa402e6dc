package order

import (
	"context"
	"errors"
)

// Store keeps records. It decides nothing: a transition is a pure function of a record,
// and Save writes what that function returned. ordertest.TestStore tests this contract.
type Store interface {
	// Load returns the record with its events, strongly consistent. It returns
	// ErrNotFound if there is no record, with the id and the events that are left,
	// ErrUnknownVersion for a status that this release does not know, and ErrCorrupt for
	// an invalid record.
	Load(ctx context.Context, id ID) (Record, error)

	// Save writes after in place of before, with the events that before does not have and
	// the effect on the stock, whole or not at all. A record without a status is missing.
	// It returns the record as it is afterwards, without its events.
	//
	// It returns ErrStale and the record that is there, if that differs from before in
	// status, seq, owner, intent, attempt, lease, stock or the note of NoteParked, or in
	// anything that after changes, but for UpdatedAt and Trace. It returns nil if the
	// record is after already, because the answer to an earlier try was lost. It returns
	// *ShortError for a quantity that is not in stock, and the errors of Load for a record
	// that is there and cannot be read. After any other error the write may or may not
	// have happened.
	Save(ctx context.Context, before, after Record) (Record, error)
}

// Saver writes the states of one kind, as Store writes records.
type Saver[T any] interface {
	Save(ctx context.Context, before, after T) (T, error)
}

// ShortError reports stock that cannot be reserved.
type ShortError struct {
	SKU      string
	Unlisted bool // the store has no such SKU
}

// Error names the SKU.
func (e *ShortError) Error() string { return "out of stock: " + e.SKU }

// ErrUnchanged is the result of a transition that has nothing to write.
var ErrUnchanged = errors.New("the record shows it already")

// maxSaves is how often a change starts again on a state that another writer changed.
// Each time another write has succeeded: the refunds of one order have the most.
const maxSaves = 20

// Change saves what a transition makes of a state. seen is the state as the caller knows
// it, so that a change costs one call: if it is stale, Save returns the state that is
// there, and the transition decides again. The transition returns ErrUnchanged if there
// is nothing to write; Change then returns nil. It returns ErrStale if others write for
// ever.
//
//nolint:ireturn // T is a record or an account
func Change[T any](
	ctx context.Context, s Saver[T], seen T, transition func(T) (T, error),
) (T, error) {
	for range maxSaves {
		after, err := transition(seen)
		if errors.Is(err, ErrUnchanged) {
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		now, err := s.Save(ctx, seen, after)
		switch {
		case err == nil:
			return now, nil
		case !errors.Is(err, ErrStale):
			return seen, err
		}
		seen = now
	}
	return seen, ErrStale
}
