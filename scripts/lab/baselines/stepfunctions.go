package baselines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// What Step Functions documents of a standard workflow.
const (
	// nameLife is how long a name stays taken after its execution ended ("You can reuse
	// names after 90 days",
	// https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html).
	nameLife = 90 * 24 * time.Hour
	// redrivable is how long a failed execution can be redriven
	// (https://docs.aws.amazon.com/step-functions/latest/dg/redrive-executions.html).
	redrivable = 14 * 24 * time.Hour
	// attempts are those of a task with "MaxAttempts": 2 in its Retry field.
	attempts = 3
)

var errNotRedrivable = errors.New("the execution failed more than 14 days ago")

// stepFunctions returns a handler that starts a standard workflow with the orderId as
// name. The execution is an item, which has its input and the time limit of its tasks.
//
// StartExecution with the name and the input of a running execution succeeds and starts
// nothing; if the execution has ended or the input differs, it returns
// ExecutionAlreadyExists, whatever the cause. So the handler compares the input, as
// DescribeExecution shows it. A delivery after a failure is the redrive by a person,
// which continues with the task that failed.
//
// In Step Functions an execution goes on without the worker that started it, and a task
// whose worker died is retried at once. Here the delivery of the message does that: while
// the time limit runs, another delivery is an error, and after it the tasks go on.
func stepFunctions(tasks func(context.Context, Env, order) error) Handler {
	return parsed(func(ctx context.Context, e Env, _ Message, o order) error {
		run := Item{
			ID: "execution#" + o.ID, Status: inProgress, Validation: contentOf(o), Deadline: e.Deadline.UnixMilli(),
		}
		before, err := e.Table.Get(ctx, run.ID)
		if err != nil {
			return err
		}
		if before.ID != "" && !before.expired(e.Now()) && before.Validation != run.Validation {
			return fmt.Errorf("%s: %w", run.ID, errPayload)
		}
		if before.Status == inProgress && e.Now().Sub(time.UnixMilli(before.Deadline)) > redrivable {
			return fmt.Errorf("%s: %w", run.ID, errNotRedrivable)
		}
		held, err := e.Table.Put(ctx, run, Condition{New: true, FreeAt: e.Now()})
		if err != nil || held.ID != "" {
			return cmp.Or(err, replay(held, run))
		}
		if err := tasks(ctx, e, o); err != nil {
			run.Deadline = e.Now().UnixMilli() // failed: it can be redriven
			return errors.Join(err, e.put(ctx, run))
		}
		run.Status, run.Deadline, run.Expiration = completed, 0, e.Now().Add(nameLife).Unix()
		return e.put(ctx, run)
	})
}

// chargeTasks are the task charge, with the orderId as Stripe's key, and the task save.
// What a task returned is recorded once it has ended. The write may fail; in Step
// Functions, the response of a task may be lost on its way.
func chargeTasks(ctx context.Context, e Env, o order) error {
	ended, err := e.Table.Get(ctx, "task#"+o.ID)
	if err != nil {
		return err
	}
	if ended.ID == "" {
		err := retried(func() (err error) {
			ended.Status, err = e.Stripe.charge(ctx, o, o.ID)
			return err
		})
		ended.ID = "task#" + o.ID
		if err == nil {
			err = e.put(ctx, ended)
		}
		if err != nil {
			return err
		}
	}
	return retried(func() error { return saveRow(ctx, e, o, ended.Status) })
}

// bindTasks are the steps of bindSteps. Their results need no record: each may be
// repeated.
func bindTasks(ctx context.Context, e Env, o order) error {
	return retried(func() error { return bindSteps(ctx, e, o) })
}

// retried runs a task with its retries, which come without a delay.
func retried(task func() error) (err error) {
	for range attempts {
		if err = task(); err == nil {
			return nil
		}
	}
	return err
}
