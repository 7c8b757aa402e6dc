package cloud

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"orderonce/adapters/config"
	"orderonce/adapters/sqs"
)

// CompareQueues prints the queues' settings, or returns an error that names each setting
// that would lose messages or park them without a reason.
func (d Deployment) CompareQueues(ctx context.Context) error {
	err := d.compare(ctx, "orders", d.Queue, d.DeadLetters)
	if err == nil && d.RefundQueue != "" {
		err = d.compare(ctx, "refunds", d.RefundQueue, d.DeadRefunds)
	}
	return err
}

func (d Deployment) compare(ctx context.Context, of string, live, deadLetters config.URL) error {
	var s sqs.Settings
	var err error
	if s.Orders, err = sqs.ReadSettings(ctx, d.AWS, string(live)); err != nil {
		return err
	}
	if s.DeadLetters, err = sqs.ReadSettings(ctx, d.AWS, string(deadLetters)); err != nil {
		return err
	}
	policy := sqs.DefaultPolicy()
	if d.Retention != 0 {
		policy.Retention = d.Retention
	}
	var lines []string
	for _, m := range s.Mismatches(policy) {
		lines = append(lines, "\n  "+m.String())
	}
	if len(lines) > 0 {
		return errors.New("queues of " + of + " misconfigured:" + strings.Join(lines, ""))
	}
	fmt.Fprintf(d.People(), "queues  %s are kept %s and received %d times, dead letters are kept %s\n",
		of, s.Orders.Retention, s.Orders.MaxReceives, s.DeadLetters.Retention)
	return nil
}
