# Orders by HTTP, if create_intake: an API that invokes functions/intake, which registers an
# order and sends it to the order queue. Callers sign their requests with IAM, or have a token
# of intake_jwt. No route is open.
#
# A separate API, although one could serve both: create_webhook = false must not delete this
# one, a shared API would count the 5xx of both in one metric, and the webhook's API must
# never be replaced, because Stripe knows its URL.

locals {
  intake = {
    enabled = var.create_intake
    function = {
      description  = "Accepts orders by HTTP"
      timeout      = 15 # three calls of the table and one of the queue; an HTTP API waits for 30 s
      reserved     = var.intake_reserved_concurrency
      kms_services = ["dynamodb", "sqs"]
    }
    essential = ["intake-failing"]
    alarms = merge(local.usual_alarms.intake, {
      # The callers repeat a 5xx, so nothing is lost. The status 503 of a queue or table
      # that does not respond counts as well.
      intake-failing = {
        metrics    = { errors = "api/intake 5xx Sum", requests = "api/intake Count Sum" }
        expression = "100 * errors / requests", above = 25, periods = [2, 3], description = <<-EOT
        A quarter of the orders by HTTP got a 5xx for 10 minutes: the function crashes, is throttled or does
        not start, or the queue or the table does not respond. Callers must repeat their requests:
        ${local.runbook}, "Orders by HTTP fail".
      EOT
      }
    })
  }

  intake_environment = merge({
    ORDERS_TABLE = aws_dynamodb_table.orders.name
    QUEUE_URL    = aws_sqs_queue.queues["orders"].url
    SCOPE        = local.scope
    }, { for name, claim in {
      OWNER_CLAIM    = try(var.intake_jwt.owner_claim, null)
      CUSTOMER_CLAIM = try(var.intake_jwt.customer_claim, null)
  } : name => claim if claim != null })

  # IAM has no condition on a sort key, so a put could replace any row. The function puts on the
  # condition that there is none. The permission is limited to the attributes of a registration:
  # a put without status makes no order, and an order row that it replaced would be unreadable
  # and parked, not charged again.
  intake_statements = {
    FindRegisteredOrders = { Action = "dynamodb:Query", Resource = aws_dynamodb_table.orders.arn }
    RegisterOrders = {
      Action   = "dynamodb:PutItem"
      Resource = aws_dynamodb_table.orders.arn
      Condition = { "ForAllValues:StringEquals" = { "dynamodb:Attributes" = [
        "orderId", "sk", "fingerprint", "amount", "currency", "caller", "createdAt", "openShard", "dueAt",
      ] } }
    }
    MarkSentOrders = {
      Action   = "dynamodb:UpdateItem"
      Resource = aws_dynamodb_table.orders.arn
      Condition = { "ForAllValues:StringEquals" = { "dynamodb:Attributes" = [
        "orderId", "sk", "openShard", "dueAt",
      ] } }
    }
    SendRegisteredOrders = { Action = "sqs:SendMessage", Resource = aws_sqs_queue.queues["orders"].arn }
  }

  # For each route, the path as IAM compares it. The wildcard is the order id.
  intake_routes = { for route, path in {
    "PUT /orders/{orderId}" = "PUT/orders/*"
    "POST /orders"          = "POST/orders"
    "GET /orders/{orderId}" = "GET/orders/*"
  } : route => path if var.create_intake }
}

resource "aws_apigatewayv2_api" "orders" {
  count = var.create_intake ? 1 : 0

  name          = "${local.prefix}-orders"
  description   = "Orders by HTTP of ${local.prefix}"
  protocol_type = "HTTP"
}

resource "aws_apigatewayv2_integration" "intake" {
  count = var.create_intake ? 1 : 0

  api_id                 = aws_apigatewayv2_api.orders[0].id
  integration_type       = "AWS_PROXY"
  integration_method     = "POST" # of the call to Lambda
  integration_uri        = aws_lambda_alias.live["intake"].invoke_arn
  payload_format_version = "2.0" # adapters/apigateway reads no other
}

resource "aws_apigatewayv2_authorizer" "intake" {
  count = var.create_intake && var.intake_jwt != null ? 1 : 0

  api_id           = aws_apigatewayv2_api.orders[0].id
  name             = "${local.prefix}-orders"
  authorizer_type  = "JWT"
  identity_sources = ["$request.header.Authorization"]

  jwt_configuration {
    issuer   = var.intake_jwt.issuer
    audience = var.intake_jwt.audience
  }

  # Without intake_jwt, delete it after the update of the routes: API Gateway deletes no
  # authorizer that a route names.
  lifecycle {
    create_before_destroy = true
  }
}

# The only routes: the API answers 404 to every other method and path.
resource "aws_apigatewayv2_route" "intake" {
  for_each = local.intake_routes

  api_id               = aws_apigatewayv2_api.orders[0].id
  route_key            = each.key
  target               = "integrations/${aws_apigatewayv2_integration.intake[0].id}"
  authorization_type   = var.intake_jwt == null ? "AWS_IAM" : "JWT"
  authorizer_id        = one(aws_apigatewayv2_authorizer.intake[*].id)
  authorization_scopes = try(var.intake_jwt.authorization_scopes, null)
}

resource "aws_apigatewayv2_stage" "orders" {
  count = var.create_intake ? 1 : 0

  api_id      = aws_apigatewayv2_api.orders[0].id
  name        = "$default" # a URL without a stage
  auto_deploy = true

  default_route_settings {
    throttling_burst_limit = var.intake_burst_limit
    throttling_rate_limit  = var.intake_rate_limit
  }

  # No ARN of the caller: its session's name is often a person's. The function logs a hash of
  # the caller.
  access_log_settings {
    destination_arn = aws_cloudwatch_log_group.intake_access[0].arn
    format          = jsonencode(merge(local.access_log, { error = "$context.error.message" }))
  }
}

resource "aws_cloudwatch_log_group" "intake_access" {
  count = var.create_intake ? 1 : 0

  name              = "/aws/vendedlogs/${local.prefix}-intake-access" # prefix: see webhook.tf
  retention_in_days = var.log_retention_days
}

# Only these routes of this API may invoke the function. Their ARNs contain the parameter as
# it is in the route.
resource "aws_lambda_permission" "intake" {
  for_each = local.intake_routes

  statement_id  = "Intake${title(lower(split(" ", each.key)[0]))}"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_alias.live["intake"].function_name
  qualifier     = aws_lambda_alias.live["intake"].name
  principal     = "apigateway.amazonaws.com"
  source_arn    = "${aws_apigatewayv2_api.orders[0].execution_arn}/$default/${replace(each.key, " ", "")}"
}

locals {
  # What a caller needs, as a policy to attach. An HTTP API has no resource policy, so a
  # caller of another account assumes a role of this one.
  intake_caller_policies = [for api in aws_apigatewayv2_api.orders : jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "CallIntake"
      Effect   = "Allow"
      Action   = "execute-api:Invoke"
      Resource = [for path in values(local.intake_routes) : "${api.execution_arn}/$default/${path}"]
    }]
  }) if var.intake_jwt == null]
}
