package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"orderonce/domain/order"
	"orderonce/scripts/invariants"
	"orderonce/scripts/jobs"
)

const httpFile = "examples/http.jsonl"

type put struct {
	invariants.Message

	answer string
}

// enter puts the orders of httpFile by HTTP, one after the other, and shows the answers
// and what became of each order.
func enter(ctx context.Context, l *local, s *summary) error {
	fmt.Printf("Putting the orders of %s by HTTP; the receipt function will be killed after SES has accepted "+
		"the receipt of %s ...\n", httpFile, receiptKilled)
	waves, err := readWaves(httpFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var puts []put
	for _, body := range slices.Concat(waves...) {
		p, err := l.put(ctx, body)
		if err != nil {
			return err
		}
		puts = append(puts, p)
	}
	var entered []invariants.Message
	for _, p := range puts {
		p.ID = l.messageOf(p.OrderID()) // the answer does not have it
		repeats := func(o invariants.Message) bool { return o.OrderID() == p.OrderID() }
		if p.ID != "" && !slices.ContainsFunc(entered, repeats) {
			entered = append(entered, p.Message)
		}
	}
	s.Messages = append(s.Messages, entered...)
	if err := l.collect(ctx, s); err != nil {
		return err
	}
	showPuts(os.Stdout, puts)
	show(os.Stdout, *s, entered)
	return nil
}

func (l *local) put(ctx context.Context, body string) (put, error) {
	p := put{Message: invariants.NewMessage(jobs.NewDecoder(), body, "")}
	if p.Invalid != nil {
		return p, fmt.Errorf("%s: %w", httpFile, p.Invalid)
	}
	got, err := l.PutOrder(ctx, string(p.OrderID()), body)
	if err != nil {
		return p, err
	}
	var shown struct{ Status, Code string }
	if got.Status >= http.StatusInternalServerError {
		return p, fmt.Errorf("put order %s: status %d, see %s", p.OrderID(), got.Status, l.folder.log())
	}
	if err := json.Unmarshal([]byte(got.Body), &shown); err != nil && shown.Code == "" {
		return p, fmt.Errorf("put order %s: %w", p.OrderID(), err)
	}
	p.answer = fmt.Sprintf("%d %s", got.Status, shown.Status+shown.Code)
	return p, errors.Join(l.Drained(ctx), l.ReceiptsDrained(ctx))
}

// messageOf returns the id of an order's first message, or "".
func (l *local) messageOf(id order.ID) string {
	for _, line := range l.log.Lines() {
		if line.OrderID == string(id) && line.Receipt == "" {
			return line.MessageID
		}
	}
	return ""
}

func showPuts(w io.Writer, puts []put) {
	requests := newTable(w, "request", "content", "answer")
	for i, p := range puts {
		content := "new"
		for _, earlier := range puts[:i] {
			if earlier.OrderID() != p.OrderID() {
				continue
			}
			if content = "other"; earlier.Order.Fingerprint() == p.Order.Fingerprint() {
				content = "the same"
				break
			}
		}
		requests.AppendRow(table.Row{"PUT /orders/" + string(p.OrderID()), content, p.answer})
	}
	fmt.Fprintln(w)
	requests.Render()
}
