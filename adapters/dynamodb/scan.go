package dynamodb

import (
	"context"

	"orderonce/domain/order"
)

// RaiseSeq sets the order's seq to that of its last event, if it is lower: its row was
// put back from a backup, and the next event would collide with one that exists. It
// returns order.ErrNotFound if the row does not exist, and order.ErrStale if the row
// changed at the same moment.
func (s *Store) RaiseSeq(ctx context.Context, id order.ID) error {
	r, err := s.Load(ctx, id)
	if err != nil {
		return err
	}
	seq := r.Seq
	for _, e := range r.Events {
		seq = max(seq, e.Seq)
	}
	if seq == r.Seq {
		return nil
	}
	raised := r
	raised.Seq, raised.Events = seq, nil
	_, err = s.Save(ctx, r, raised)
	return Wrap("raise seq of", id, err)
}
