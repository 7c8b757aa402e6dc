package baselines

import "context"

// checkThenAct is from an article of a course on Lambda. It reads the status row by orderId; a row means that the order is done
// and the message is deleted. Otherwise it works, puts the row without a condition, and deletes the message.
//
// It promises that a message which SQS delivers twice is processed once. It is enough for duplicates that come one after the
// other, once the row is written: the row has no end, so it holds for years. Two deliveries at once both read that there is no
// row, and whoever dies before the row is written has charged without a trace.
func checkThenAct(ctx context.Context, e Env, m Message) error {
	o, err := orderOf(m)
	if err != nil {
		return err
	}
	row, err := e.Table.Get(ctx, rowOf(o.ID))
	if err != nil || len(row) > 0 {
		return err
	}
	return work(ctx, e, o, "") // its row is the order's own; the article's word for a paid one is PROCESSED
}
