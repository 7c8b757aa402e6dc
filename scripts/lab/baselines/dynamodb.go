package baselines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

var _ Table = (*DynamoDB)(nil)

// DynamoDB is a Table in DynamoDB, with the retries of its aws.Config. When the response
// to a conditional write is lost, the SDK retries it, and the retry fails on the item
// that the first attempt wrote. It is safe for concurrent use.
type DynamoDB struct {
	client *dynamodb.Client
	name   string
}

// NewDynamoDB returns the table called name. Create creates it.
func NewDynamoDB(cfg aws.Config, name string) *DynamoDB {
	return &DynamoDB{client: dynamodb.NewFromConfig(cfg), name: name}
}

// createTimeout is how long Create waits until the table is active.
const createTimeout = 2 * time.Minute

// Create creates the table, with on-demand capacity and a time to live, and waits until
// it is active.
func (d *DynamoDB) Create(ctx context.Context) error {
	_, err := d.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: &d.name, BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String(ID), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(ID), KeyType: types.KeyTypeHash}},
	})
	if err != nil {
		return fmt.Errorf("create table %q: %w", d.name, err)
	}
	active := dynamodb.NewTableExistsWaiter(d.client,
		func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = 10 * time.Millisecond })
	if err := active.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &d.name}, createTimeout); err != nil {
		return fmt.Errorf("wait for table %q: %w", d.name, err)
	}
	_, err = d.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &d.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(expiration), Enabled: aws.Bool(true),
		},
	})
	if err != nil {
		return fmt.Errorf("set time to live of table %q: %w", d.name, err)
	}
	return nil
}

// Get implements Table. The read is eventually consistent, the default of GetItem.
func (d *DynamoDB) Get(ctx context.Context, id string) (Item, error) {
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.name, Key: encode(Item{ID: id})})
	if err != nil {
		return Item{}, fmt.Errorf("get %q: %w", id, err)
	}
	return decode(out.Item)
}

// Put implements Table.
func (d *DynamoDB) Put(ctx context.Context, item Item, c Condition) error {
	in := &dynamodb.PutItemInput{
		TableName: &d.name, Item: encode(item),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if c.Open {
		in.ConditionExpression = aws.String("attribute_not_exists(#status)")
		in.ExpressionAttributeNames = map[string]string{"#status": "status"}
	}
	if c.New {
		in.ConditionExpression = aws.String("attribute_not_exists(id)")
	}
	if !c.FreeAt.IsZero() {
		in.ConditionExpression = aws.String("attribute_not_exists(id) OR expiration < :now OR " +
			"(#status = :running AND in_progress_expiration < :nowMillis)")
		in.ExpressionAttributeNames = map[string]string{"#status": "status"}
		in.ExpressionAttributeValues = map[string]types.AttributeValue{
			":now": number(c.FreeAt.Unix()), ":nowMillis": number(c.FreeAt.UnixMilli()),
			":running": &types.AttributeValueMemberS{Value: string(inProgress)},
		}
	}
	_, err := d.client.PutItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		old, err := decode(failed.Item)
		if err != nil {
			return err
		}
		return &ConditionFailedError{old}
	case err != nil:
		return fmt.Errorf("put %q: %w", item.ID, err)
	}
	return nil
}

// Delete implements Table.
func (d *DynamoDB) Delete(ctx context.Context, id string) error {
	in := &dynamodb.DeleteItemInput{TableName: &d.name, Key: encode(Item{ID: id})}
	if _, err := d.client.DeleteItem(ctx, in); err != nil {
		return fmt.Errorf("delete %q: %w", id, err)
	}
	return nil
}

// The attributes of an item. The names are the defaults of Powertools for AWS Lambda.
func (i *Item) texts() map[string]*string {
	return map[string]*string{
		ID: &i.ID, "status": (*string)(&i.Status), "validation": &i.Validation, "intent": &i.Intent,
	}
}

func (i *Item) numbers() map[string]*int64 {
	return map[string]*int64{
		"amount": &i.Amount, expiration: &i.Expiration, "in_progress_expiration": &i.Deadline,
	}
}

const expiration = "expiration"

func number(n int64) types.AttributeValue { //nolint:ireturn // as the SDK has it
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func encode(item Item) map[string]types.AttributeValue {
	out := map[string]types.AttributeValue{}
	for name, text := range item.texts() {
		if *text != "" {
			out[name] = &types.AttributeValueMemberS{Value: *text}
		}
	}
	for name, n := range item.numbers() {
		if *n != 0 {
			out[name] = number(*n)
		}
	}
	return out
}

func decode(in map[string]types.AttributeValue) (item Item, err error) {
	for name, text := range item.texts() {
		if v, ok := in[name].(*types.AttributeValueMemberS); ok {
			*text = v.Value
		}
	}
	for name, n := range item.numbers() {
		if v, ok := in[name].(*types.AttributeValueMemberN); ok {
			if *n, err = strconv.ParseInt(v.Value, 10, 64); err != nil {
				return Item{}, fmt.Errorf("attribute %q: %w", name, err)
			}
		}
	}
	return item, nil
}
