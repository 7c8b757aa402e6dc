locals {
  orders_table = coalesce(var.orders_table_name, "${local.prefix}-orders")
}

# docs/reference/row.md lists the attributes. infra/drift_test.go compares this table with the one of the tests.
resource "aws_dynamodb_table" "orders" {
  name                        = local.orders_table
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "orderId"
  range_key                   = "sk"
  deletion_protection_enabled = var.deletion_protection

  # The outbox: event rows leave by it. Nothing reads it until functions/publish exists, and an unread stream costs nothing.
  stream_enabled   = true
  stream_view_type = "NEW_IMAGE"

  attribute {
    name = "orderId"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  attribute {
    name = "openShard"
    type = "N"
  }

  attribute {
    name = "dueAt"
    type = "N"
  }

  # Orders that still wait for something. Sparse: a settled order has neither attribute.
  global_secondary_index {
    name            = "open"
    projection_type = "KEYS_ONLY"

    key_schema {
      attribute_name = "openShard"
      key_type       = "HASH"
    }

    key_schema {
      attribute_name = "dueAt"
      key_type       = "RANGE"
    }
  }

  # Only event rows carry it. An order that expired could be charged again.
  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }

  dynamic "warm_throughput" {
    for_each = var.warm_throughput == null ? [] : [var.warm_throughput]

    content {
      read_units_per_second  = warm_throughput.value.read
      write_units_per_second = warm_throughput.value.write
    }
  }

  # A restored table may be older than the money: see "What it does not promise" in the README before it is used.
  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null # false is encryption with a key that AWS owns
    kms_key_arn = var.kms_key_arn
  }

  lifecycle {
    # DynamoDB raises the warm throughput of a table that is used. Less than that in the
    # configuration, and the provider would replace the table, rows and all.
    ignore_changes = [warm_throughput]
  }

  depends_on = [aws_iam_role_policy.keys]
}
