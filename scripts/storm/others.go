package main

import (
	"context"
	"iter"
	"strings"
	"sync"

	"orderonce/adapters/dynamodb/dynamodbtest"
	"orderonce/adapters/lambda/lambdatest"
	"orderonce/scripts/designs"
	"orderonce/scripts/local/system"
	"orderonce/scripts/storm/play"
)

// theirTable is the table of every handler but ours.
const theirTable = "others"

// program is the one program of all designs. It is built once, for whoever asks first.
type program struct {
	pkg, folder  string
	once         sync.Once
	binary, next string
	err          error
}

func (p *program) build(ctx context.Context, _ string) (binary, next string, err error) {
	p.once.Do(func() { p.binary, p.next, p.err = build(ctx, lambdatest.Program{Package: p.pkg}, p.folder) })
	return p.binary, p.next, p.err
}

// others are the designs that people copy. They are one program, built into a folder, which is told which of them it is.
func others(pkg, folder string) []play.Handler {
	one := &program{pkg: pkg, folder: folder}
	var all []play.Handler
	for _, d := range designs.All() {
		all = append(all, play.Handler{
			Name: d.Name, Pattern: d.Pattern, Claim: d.Claim, OneEach: d.FIFO,
			Build: one.build,
			Options: func(o *system.Options) {
				o.FIFO = o.FIFO || d.FIFO
				o.Rules.ListLag = d.ListLag
				o.Travels = true
				o.Env = map[string]string{"DESIGN": d.Name, "ORDERS_TABLE": theirTable, "FUNCTION_TIMEOUT": o.FunctionTimeout.String()}
			},
			Prepare: createTable,
			Rows:    theirRows,
		})
	}
	return all
}

func createTable(ctx context.Context, s *system.System) error {
	config := dynamodbtest.Config(s.Engine.Endpoint, func(string) string { return "" })
	return designs.NewDynamoDB(config, theirTable).Create(ctx)
}

// theirRows are the orders' rows among the other items of the table.
func theirRows(ctx context.Context, s *system.System) iter.Seq2[play.Row, error] {
	return func(yield func(play.Row, error) bool) {
		for item, err := range s.Items(ctx, theirTable) {
			id, isOrder := strings.CutPrefix(system.Text(item, designs.ID), "order#")
			status := designs.Status(system.Text(item, "status"))
			row := play.Row{OrderID: id, Settled: status != "", Paid: status == designs.Paid, Amount: system.Number(item, "amount")}
			if (isOrder || err != nil) && !yield(row, err) {
				return
			}
		}
	}
}
