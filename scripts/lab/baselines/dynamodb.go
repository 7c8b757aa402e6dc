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
			AttributeName: aws.String(Expiration), Enabled: aws.Bool(true),
		},
	})
	if err != nil {
		return fmt.Errorf("set time to live of table %q: %w", d.name, err)
	}
	return nil
}

// Drop deletes the table.
func (d *DynamoDB) Drop(ctx context.Context) error {
	if _, err := d.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &d.name}); err != nil {
		return fmt.Errorf("delete table %q: %w", d.name, err)
	}
	return nil
}

// Get implements Table. The read is eventually consistent, the default of GetItem.
func (d *DynamoDB) Get(ctx context.Context, id string) (Item, error) {
	out, err := d.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &d.name, Key: encode(Item{ID: S(id)})})
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", id, err)
	}
	return decodeItem(out.Item)
}

// Put implements Table.
func (d *DynamoDB) Put(ctx context.Context, item Item) error {
	return d.put(ctx, item, &dynamodb.PutItemInput{})
}

// PutIf implements Table.
func (d *DynamoDB) PutIf(ctx context.Context, item Item, c Condition) error {
	in := &dynamodb.PutItemInput{
		ConditionExpression:                 aws.String("attribute_not_exists(id)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if !c.FreeAt.IsZero() {
		in.ConditionExpression = aws.String("attribute_not_exists(id) OR expiration < :now OR " +
			"(#status = :running AND in_progress_expiration < :nowMillis)")
		in.ExpressionAttributeNames = map[string]string{"#status": "status"}
		in.ExpressionAttributeValues = encode(Item{
			":now": N(c.FreeAt.Unix()), ":nowMillis": N(c.FreeAt.UnixMilli()), ":running": S("INPROGRESS"),
		})
	}
	return d.put(ctx, item, in)
}

func (d *DynamoDB) put(ctx context.Context, item Item, in *dynamodb.PutItemInput) error {
	if item.id() == "" {
		return errNoID
	}
	in.TableName, in.Item = &d.name, encode(item)
	_, err := d.client.PutItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	switch {
	case errors.As(err, &failed):
		old, err := decodeItem(failed.Item)
		if err != nil {
			return err
		}
		return &ConditionFailedError{old}
	case err != nil:
		return fmt.Errorf("put %q: %w", item.id(), err)
	}
	return nil
}

// Delete implements Table.
func (d *DynamoDB) Delete(ctx context.Context, id string) error {
	in := &dynamodb.DeleteItemInput{TableName: &d.name, Key: encode(Item{ID: S(id)})}
	if _, err := d.client.DeleteItem(ctx, in); err != nil {
		return fmt.Errorf("delete %q: %w", id, err)
	}
	return nil
}

func encode(item Item) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(item))
	for name, value := range item {
		switch v := value.(type) {
		case S:
			out[name] = &types.AttributeValueMemberS{Value: string(v)}
		case N:
			out[name] = &types.AttributeValueMemberN{Value: strconv.FormatInt(int64(v), 10)}
		}
	}
	return out
}

func decodeItem(in map[string]types.AttributeValue) (Item, error) {
	item := make(Item, len(in))
	for name, value := range in {
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			item[name] = S(v.Value)
		case *types.AttributeValueMemberN:
			n, err := strconv.ParseInt(v.Value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("attribute %q: %w", name, err)
			}
			item[name] = N(n)
		default:
			return nil, fmt.Errorf("attribute %q: want S or N, got %T", name, value)
		}
	}
	return item, nil
}
